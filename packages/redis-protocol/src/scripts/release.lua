-- Gives the lock back if this very acquisition holds it, straight to the next waiter if there is one.
-- KEYS  1 lock · 2 token of the slot · 3 queue
-- ARGV  1 acquisition id · 2 notify of the caller
-- Reply 0 not held · 1 released · {id, token} released, and this waiter of the calling process holds it now
local held = redis.call('GET', KEYS[1])
if not held then return 0 end
local own = ARGV[1] .. '|'
if string.sub(held, 1, #own) ~= own then return 0 end
-- First write DEL: it passes when memory is full, and lets the writes after it pass.
redis.call('DEL', KEYS[1])
if string.byte(held, #own + 1) == 45 then return 1 end
@include clock
@include token
@include hand-over
local handed = hand_over(KEYS[1], KEYS[2], KEYS[3], ARGV[2])
if type(handed) == 'table' then return handed end
return 1
