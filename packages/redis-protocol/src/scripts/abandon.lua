-- Afterwards the id neither holds nor waits. Idempotent.
-- KEYS  1 lock · 2 token of the slot · 3 queue
-- ARGV  1 acquisition id · 2 notify of the caller · 3… the waiter's member of the queue, in all forms it may have
-- Reply 0 did not hold · 1 released · {id, token} released, and this waiter of the calling process holds it now
local queued = redis.call('ZREM', KEYS[3], unpack(ARGV, 3))
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'string' and string.sub(held, 1, #ARGV[1] + 1) == ARGV[1] .. '|' then
  redis.call('DEL', KEYS[1])
  @include clock
  @include token
  @include hand-over
  local handed = hand_over(KEYS[1], KEYS[2], KEYS[3], ARGV[2])
  if type(handed) == 'table' then return handed end
  return 1
end
if queued > 0 and redis.call('ZCOUNT', KEYS[3], '0', '+inf') == 0 then
  redis.call('DEL', KEYS[3])
end
if type(held) == 'table' then return held end
return 0
