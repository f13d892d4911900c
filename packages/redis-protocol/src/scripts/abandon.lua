-- Makes an acquisition id neither hold nor wait, and serves the next waiters. Idempotent.
-- KEYS  1 lock · 2 token of the slot · 3 queue
-- ARGV  1 acquisition id · 2 reply address of the caller · 3… the waiter's member of the queue, in all forms it may have
-- Reply 'released' or 'not-held': whether the id held, then id, token, …: the waiters of the calling process that hold the
--       lock now
local queued = redis.call('ZREM', KEYS[3], unpack(ARGV, 3))
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then return held end
local released = held and string.sub(held, 1, #ARGV[1] + 1) == ARGV[1] .. '|'
local by_shares = held and string.find(held, '^%*%d+|%d+|[+-]|%d+|%d+$')
if released then redis.call('DEL', KEYS[1]) end
-- The abandoned waiter may have held back the waiters behind it.
if released or by_shares or (queued > 0 and not held) then
  @include clock
  @include token
  @include shares
  @include hand-off
  local mark
  if by_shares then
    local holders = string.sub(KEYS[3], 1, -2) .. 'h'
    released = redis.call('HEXISTS', holders, ARGV[1]) == 1
    held, mark = remove_ended(KEYS[1], holders, held, ARGV[1], true)
  end
  local word = released and 'released' or 'not-held'
  return hand_off(KEYS[1], KEYS[2], KEYS[3], ARGV[2], mark, word) or word
end
if queued > 0 and redis.call('ZCOUNT', KEYS[3], '0', '+inf') == 0 then
  redis.call('DEL', KEYS[3])
end
return 'not-held'
