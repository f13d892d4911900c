-- Half of the renewal of a share, one key at a time: for a slot that is being migrated, where scripts on several keys
-- fail. First the lock key, then the holders: nobody else gets in between, since the mark stands longer, not shorter.
-- KEYS  1 lock, or holders
-- ARGV  1 ttl ms · 2 with the holders: the share
-- Reply 1 renewed · 0 absent · 2 another's
@include clock
local now_ms = math.floor(now / 1000)
if ARGV[2] then
  local ends = redis.call('ZSCORE', KEYS[1], ARGV[2])
  if not ends or ends + 0 <= now_ms then return 2 end
else
  local held = redis.call('GET', KEYS[1])
  if not held then return 0 end
  if string.byte(held) ~= 42 then return 2 end
end
if redis.call('PTTL', KEYS[1]) < ARGV[1] + 0 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
if ARGV[2] then redis.call('ZADD', KEYS[1], now_ms + ARGV[1], ARGV[2]) end
return 1
