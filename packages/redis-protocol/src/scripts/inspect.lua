-- Reads who holds and who waits. Writes nothing.
-- KEYS  1 lock · 2 queue · 3 holders
-- ARGV  [1 any text: leave the waiters out]
-- Reply {value or false, pttl, server ms, {id, share, …}, minus the limit of waiting permits or false, member, position, …};
--       members and positions are those of live waiters, in order
@include clock
local now_ms = math.floor(now / 1000)
local held = redis.call('GET', KEYS[1])
local shares = held and string.sub(held, 1, 1) == '*' and redis.call('HGETALL', KEYS[3]) or {}
local reply = { held, redis.call('PTTL', KEYS[1]), now_ms, shares, redis.call('ZSCORE', KEYS[2], '#') }
if ARGV[1] then return reply end
local alive = {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('-%.0f', now / 1000))) do
  alive[member] = true
end
local waiting = redis.call('ZRANGEBYSCORE', KEYS[2], '0', '+inf', 'WITHSCORES')
for i = 1, #waiting, 2 do
  -- A member that a stranger wrote has no channel.
  local reply_address = string.match(waiting[i], '^[^|]*|[^|]*|([^|]*)|')
  if reply_address and alive['@' .. reply_address] then
    reply[#reply + 1] = waiting[i]
    reply[#reply + 1] = waiting[i + 1]
  end
end
return reply
