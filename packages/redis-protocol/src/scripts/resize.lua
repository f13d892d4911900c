-- Changes the limit of the permits of a resource, held and waiting ones, and serves the waiters that fit now.
-- KEYS  1 lock · 2 token of the slot · 3 queue · 4 holders
-- ARGV  1 limit · 2 reply address of the caller
-- Reply 'set', id, token, …: set, or there was nothing to set; these waiters of the caller hold now
--       'conflict', limit: as in the reply of `acquire`
@include clock
@include token
@include shares
@include hand-off
local held, mark = remove_ended(KEYS[1], KEYS[4], redis.call('GET', KEYS[1]))
if is_exclusive(held) then return { 'conflict', exclusive_limit } end
if mark and mark.limit == reader_limit then return { 'conflict', reader_limit } end
local waiting = redis.call('ZSCORE', KEYS[3], '#')
if waiting then
  redis.call('ZADD', KEYS[3], -ARGV[1], '#')
elseif not mark then
  return redis.call('EXISTS', KEYS[3]) == 1 and { 'conflict', exclusive_limit } or 'set'
end
if mark then
  mark.limit = ARGV[1] + 0
elseif held then
  return 'set'
end
return hand_off(KEYS[1], KEYS[2], KEYS[3], ARGV[2], mark, 'set') or 'set'
