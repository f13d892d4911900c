-- Changes the limit of the permits of a resource, held and waiting ones, and serves the waiters that fit now.
-- KEYS  1 lock · 2 token of the slot · 3 queue · 4 holders
-- ARGV  1 limit · 2 notify of the caller
-- Reply {1, id, token, …}: set, or there was nothing to set; these waiters of the caller hold now
--       {0, limit}: conflict, as in the reply of `acquire`
@include clock
@include token
@include shares
@include hand-off
local held, m = shares(KEYS[1], KEYS[4], redis.call('GET', KEYS[1]))
if held and string.find(held, '^[%w_-]+|[+-]|%d+|') then return { 0, -1 } end
if m and m.limit == 0 then return { 0, 0 } end
local waiting = redis.call('ZSCORE', KEYS[3], '#')
if waiting then
  redis.call('ZADD', KEYS[3], -ARGV[1], '#')
elseif not m then
  return redis.call('EXISTS', KEYS[3]) == 1 and { 0, -1 } or { 1 }
end
if m then
  m.limit = ARGV[1] + 0
elseif held then
  return { 1 }
end
local reply = hand_off(KEYS[1], KEYS[2], KEYS[3], ARGV[2], m) or {}
table.insert(reply, 1, 1)
return reply
