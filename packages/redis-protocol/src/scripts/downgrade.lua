-- Turns an exclusive hold into a share of a reader with the same end and token, and serves the readers at the head of
-- the queue. Idempotent.
-- KEYS  1 lock · 2 token of the slot · 3 queue · 4 holders
-- ARGV  1 acquisition id · 2 reply address of the caller
-- Reply 'nobody-holds' · 'another-holds' · 'shared', ms left, id, token, …: these waiters of the caller hold it too
@include clock
@include token
@include shares
@include hand-off
local held = redis.call('GET', KEYS[1])
if not held then return 'nobody-holds' end
local id, flag, token, label = string.match(held, '^([^|]*)|([+-])|(%d+)|(.*)$')
if id ~= ARGV[1] then
  local ends = parse_mark(held) and find_share(KEYS[4], ARGV[1])
  return ends and ends > now_ms and { 'shared', ends - now_ms } or 'another-holds'
end
clear(KEYS[4])
local left = math.max(1, redis.call('PTTL', KEYS[1]))
-- This write changes nothing; after it, Redis lets the other writes pass though its memory is full.
redis.call('PEXPIRE', KEYS[1], left)
local mark = { limit = reader_limit, used = 0 }
add_share(KEYS[4], mark, id, left, token, reader_weight, label)
write_mark(KEYS[1], KEYS[4], mark, flag)
-- `unpack` would fail beyond some thousand values.
local reply = flag == '+' and hand_off(KEYS[1], KEYS[2], KEYS[3], ARGV[2], mark, 'shared') or { 'shared' }
table.insert(reply, 2, left)
return reply
