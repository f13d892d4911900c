-- Ends a hold, ours or a stranger's, and serves the next waiter.
-- KEYS  1 lock · 2 token of the slot · 3 queue
-- ARGV  1 notify of the caller · 2 only if this one holds it: an acquisition id, or the whole value of a stranger's key
-- Reply 0 nothing ended · {value, pttl} ended · {value, pttl, id, token} and this waiter of the caller holds it now
local held = redis.call('GET', KEYS[1])
if not held then return 0 end
if ARGV[2] and held ~= ARGV[2] and string.sub(held, 1, #ARGV[2] + 1) ~= ARGV[2] .. '|' then return 0 end
local left = redis.call('PTTL', KEYS[1])
redis.call('DEL', KEYS[1])
@include clock
@include token
@include hand-over
local handed = hand_over(KEYS[1], KEYS[2], KEYS[3], ARGV[1])
if type(handed) == 'table' then return { held, left, handed[1], handed[2] } end
return { held, left }
