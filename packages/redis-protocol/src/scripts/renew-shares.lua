-- Pushes back the ends of many shares, and of exclusive holds that may have become shares.
-- KEYS  for each: lock, holders
-- ARGV  for each: acquisition id, token, ttl ms
-- Reply for each: a number of renewal-replies.lua · a string: the error of its keys
@include renewal-replies
@include clock
@include shares
local function renew(lock, holders, id, token, ttl)
  local held = redis.call('GET', lock)
  if not held then return nobody_holds end
  local holder, held_token = string.match(held, '^([%w_-]+)|[+-]|(%d+)|')
  if holder == id and held_token == token then
    redis.call('PEXPIRE', lock, ttl)
    return renewed
  end
  local mark = parse_mark(held)
  if not mark or not renew_share(holders, id, token, ttl) then return another_holds end
  local first, last = mark.first, mark.last
  extend(mark, now_ms + ttl, ttl)
  if mark.first ~= first or mark.last ~= last then write_mark(lock, holders, mark, mark.flag) end
  return renewed
end
local replies = {}
for i = 1, #KEYS, 2 do
  local _, reply = pcall(renew, KEYS[i], KEYS[i + 1], unpack(ARGV, (i - 1) / 2 * 3 + 1, (i - 1) / 2 * 3 + 3))
  if type(reply) == 'table' then reply = reply.err end
  if string.find(reply, 'WRONGTYPE') then reply = another_holds end
  replies[#replies + 1] = reply
end
return replies
