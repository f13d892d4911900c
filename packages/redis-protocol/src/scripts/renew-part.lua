-- Renews a share one key at a time, for a slot that is being migrated, where scripts on several keys fail. The lock key
-- comes first, then the holders: in between the mark lasts too long rather than too short, so it still excludes others.
-- KEYS  1 lock, or holders
-- ARGV  1 ttl ms · 2, 3 with the holders: acquisition id, token
-- Reply a number of renewal-replies.lua
@include renewal-replies
@include clock
@include shares
if ARGV[2] then
  if not renew_share(KEYS[1], ARGV[2], ARGV[3], ARGV[1]) then return another_holds end
else
  local held = redis.call('GET', KEYS[1])
  if not held then return nobody_holds end
  local mark = parse_mark(held)
  if not mark then return another_holds end
  extend(mark, now_ms + ARGV[1], ARGV[1])
  local value = string.match(held, '^%*%d+|%d+|[+-]|') .. mark.first .. '|' .. mark.last
  redis.call('SET', KEYS[1], value, 'PX', mark.last - now_ms)
end
return renewed
