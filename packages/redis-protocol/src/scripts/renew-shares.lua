-- Pushes back the ends of many shares, and of exclusive holds that may have become shares. Claims hand-offs: then it shortens
-- nothing, since a claim that is sent again may come after a renewal for longer.
-- KEYS  for each: lock, holders
-- ARGV  for each: acquisition id, ttl ms · `claim` at the end, or nothing
-- Reply for each: 0 nobody holds · 2 another id holds · a larger number: renewed, its token · a string: the error of its
--       keys
@include clock
@include shares
local claims = #ARGV > #KEYS
local function renew(lock, holders, id, ttl)
  local held = redis.call('GET', lock)
  if not held then return 0 end
  if string.sub(held, 1, #id + 1) == id .. '|' then
    redis.call('PEXPIRE', lock, claims and math.max(ttl, redis.call('PTTL', lock)) or ttl)
    return tonumber(string.match(held, '^[^|]*|[+-]|(%d+)|'))
  end
  local m = parse_mark(held)
  local token = m and renew_share(holders, id, ttl, claims)
  if not token then return 2 end
  local first, last = m.first, m.last
  extend(m, now_ms + ttl, ttl)
  if m.first ~= first or m.last ~= last then write_mark(lock, holders, m, m.flag) end
  return tonumber(token)
end
local replies = {}
for i = 1, #KEYS, 2 do
  local _, reply = pcall(renew, KEYS[i], KEYS[i + 1], ARGV[i], ARGV[i + 1])
  if type(reply) == 'table' then reply = reply.err end
  if string.find(reply, 'WRONGTYPE') then reply = 2 end
  replies[#replies + 1] = reply
end
return replies
