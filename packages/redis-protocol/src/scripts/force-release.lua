-- Ends holds, ours or a stranger's, and serves the next waiters.
-- KEYS  1 lock · 2 token of the slot · 3 queue · 4 holders
-- ARGV  1 notify of the caller · 2 only if this one holds it: an acquisition id, or the whole value of a stranger's key
-- Reply 0 nothing ended · {value, pttl, server ms, {the members and scores of its shares, if it was held by such}, id,
--       token, …} ended, and these waiters of the caller hold it now
local held = redis.call('GET', KEYS[1])
if not held then return 0 end
@include clock
@include token
@include shares
@include hand-over
local left = redis.call('PTTL', KEYS[1])
local ended = {}
local limit, used
if string.byte(held) == 42 then
  for _, share in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], '(' .. now_ms, 1e14)) do
    local id = string.match(share, '^#([^|]*)|')
    if not ARGV[2] or id == ARGV[2] then
      for _, member in ipairs({ share, '$' .. id }) do
        ended[#ended + 1] = member
        ended[#ended + 1] = redis.call('ZSCORE', KEYS[4], member)
      end
    end
  end
  if not ended[1] then return 0 end
  if ARGV[2] then
    local _
    _, limit, used = shares(KEYS[1], KEYS[4], held, ended[1], true)
  else
    redis.call('DEL', KEYS[1], KEYS[4])
  end
else
  if ARGV[2] and held ~= ARGV[2] and string.sub(held, 1, #ARGV[2] + 1) ~= ARGV[2] .. '|' then return 0 end
  redis.call('DEL', KEYS[1])
end
return { held, left, now_ms, ended, unpack(hand_over(KEYS[1], KEYS[2], KEYS[3], ARGV[1], limit, used) or {}) }
