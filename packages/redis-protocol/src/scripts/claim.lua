-- Claims hand-offs: extends locks that were handed off for the claim time to their whole ttl. Touches lock keys only.
-- KEYS  n locks
-- ARGV  for each lock: acquisition id, ttl ms
-- Reply for each lock: the fencing token · 0 this id does not hold it · a string: the error of this key
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
