-- What is held and who waits; writes nothing.
-- KEYS  1 lock · 2 queue
-- Reply {value or false, pttl, server ms, member, place, …}: the live waiters, in order
@include clock
local reply = { redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1]), math.floor(now / 1000) }
local alive = {}
for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('-%.0f', now / 1000))) do
  alive[member] = true
end
local waiting = redis.call('ZRANGEBYSCORE', KEYS[2], '0', '+inf', 'WITHSCORES')
for i = 1, #waiting, 2 do
  if alive['@' .. string.match(waiting[i], '^[^|]*|%d+|([^|]*)|')] then
    reply[#reply + 1] = waiting[i]
    reply[#reply + 1] = waiting[i + 1]
  end
end
return reply
