-- Ends holds, ours or a stranger's, and serves the next waiters.
-- KEYS  1 lock · 2 token of the slot · 3 queue · 4 holders
-- ARGV  1 reply address of the caller · 2 only if this one holds it: an acquisition id, or the whole value of a stranger's key
-- Reply 'nothing-ended' · 'ended', value, pttl, server ms, {id, share, …}, id, token, …: the holds that ended, with the
--       shares among them, then the waiters of the caller that hold the lock now
local held = redis.call('GET', KEYS[1])
if not held then return 'nothing-ended' end
@include clock
@include token
@include shares
@include hand-off
local left = redis.call('PTTL', KEYS[1])
local ended = {}
local mark
if parse_mark(held) then
  local all = redis.call('HGETALL', KEYS[4])
  for i = 1, #all, 2 do
    if (parse_share(all[i + 1]) or 0) > now_ms and (not ARGV[2] or all[i] == ARGV[2]) then
      ended[#ended + 1] = all[i]
      ended[#ended + 1] = all[i + 1]
    end
  end
  if not ended[1] then return 'nothing-ended' end
  if ARGV[2] then
    local _
    _, mark = remove_ended(KEYS[1], KEYS[4], held, ARGV[2], true)
  else
    redis.call('DEL', KEYS[1], KEYS[4])
  end
else
  if ARGV[2] and held ~= ARGV[2] and string.sub(held, 1, #ARGV[2] + 1) ~= ARGV[2] .. '|' then return 'nothing-ended' end
  redis.call('DEL', KEYS[1])
end
local reply = hand_off(KEYS[1], KEYS[2], KEYS[3], ARGV[1], mark, 'ended') or { 'ended' }
for i, value in ipairs({ held, left, now_ms, ended }) do table.insert(reply, i + 1, value) end
return reply
