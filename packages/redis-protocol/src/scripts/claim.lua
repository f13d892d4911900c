-- Takes up hand-overs: gives locks that were handed over for the claim time their whole ttl. Touches lock keys alone.
-- KEYS  n locks
-- ARGV  for each lock: acquisition id, ttl ms
-- Reply for each lock: the fencing token · 0 not held by this id · a string: the error of this key
local replies = {}
for i, lock in ipairs(KEYS) do
  local held = redis.pcall('GET', lock)
  local own = ARGV[2 * i - 1] .. '|'
  if type(held) == 'table' then
    replies[i] = held.err
  elseif held and string.sub(held, 1, #own) == own and redis.call('PEXPIRE', lock, ARGV[2 * i]) == 1 then
    replies[i] = tonumber(string.match(held, '^[^|]*|[+-]|(%d+)|'))
  else
    replies[i] = 0
  end
end
return replies
