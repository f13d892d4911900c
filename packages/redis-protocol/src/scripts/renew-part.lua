-- Half of the renewal of a share, one key at a time: for a slot that is being migrated, where scripts on several keys
-- fail. First the lock key, then the holders: nobody else gets in between, since the mark stands longer, not shorter.
-- KEYS  1 lock, or holders
-- ARGV  1 ttl ms · 2 acquisition id · 3 with the holders: the share
-- Reply 1 renewed · 0 absent · 2 another's
@include clock
local now_ms = math.floor(now / 1000)
local ends = now_ms + ARGV[1]
if ARGV[3] then
  local ended = redis.call('ZSCORE', KEYS[1], ARGV[3])
  if not ended or ended + 0 <= now_ms then return 2 end
  redis.call('ZADD', KEYS[1], ends, ARGV[3])
  if redis.call('PTTL', KEYS[1]) < ARGV[1] + 60000 then redis.call('PEXPIRE', KEYS[1], ARGV[1] + 120000) end
else
  local held = redis.call('GET', KEYS[1])
  if not held then return 0 end
  local mark, first, last, id = string.match(held, '^(%*%d+|%d+|[+-]|)(%d+)|(%d+)|(.*)$')
  if not mark then return 2 end
  if ends >= last + 0 then last, id = ends, ARGV[2] end
  redis.call('SET', KEYS[1], mark .. math.min(first, ends) .. '|' .. last .. '|' .. id, 'PX', last - now_ms)
end
return 1
