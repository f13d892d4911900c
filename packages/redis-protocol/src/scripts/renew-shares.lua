-- Pushes the ends of many shares back, and of exclusive holds that may have become one.
-- KEYS  for each: lock, holders
-- ARGV  for each: acquisition id, ttl ms, share
-- Reply for each: 0 absent · 2 another's · a larger number: renewed, its token · a string: the error of its keys
@include clock
@include shares
local function renew(lock, holders, id, ttl, share)
  local held = redis.call('GET', lock)
  if not held then return 0 end
  if string.sub(held, 1, #id + 1) == id .. '|' then
    redis.call('PEXPIRE', lock, ttl)
    return tonumber(string.match(held, '^[^|]*|[+-]|(%d+)|'))
  end
  local limit, used, flag = string.match(held, '^%*(%d+)|(%d+)|([+-])|%d+|%d+|')
  local ends = limit and redis.call('ZSCORE', holders, share)
  if not ends or ends + 0 <= now_ms then return 2 end
  -- First write PEXPIRE: it passes when memory is full, and lets the writes after it pass.
  redis.call('PEXPIRE', lock, ttl)
  redis.call('ZADD', holders, now_ms + ttl, share)
  settle(lock, holders, limit, used, flag)
  return tonumber(redis.call('ZSCORE', holders, '$' .. id))
end
local replies = {}
for i = 1, #KEYS, 2 do
  local at = (i - 1) / 2 * 3 + 1
  local _, reply = pcall(renew, KEYS[i], KEYS[i + 1], ARGV[at], ARGV[at + 1], ARGV[at + 2])
  if type(reply) == 'table' then reply = reply.err end
  if string.find(reply, 'WRONGTYPE') then reply = 2 end
  replies[#replies + 1] = reply
end
return replies
