-- Pushes back the ends of many leases. Touches lock keys only; works while memory is full.
-- KEYS  n locks
-- ARGV  for each lock: acquisition id, ttl ms
-- Reply for each lock: 1 renewed · 0 nobody holds · 2 another id holds · a string: the error of this key
local replies = {}
for i, lock in ipairs(KEYS) do
  local held = redis.pcall('GET', lock)
  local own = ARGV[2 * i - 1] .. '|'
  if not held then
    replies[i] = 0
  elseif type(held) == 'table' then
    replies[i] = string.find(held.err, '^WRONGTYPE') and 2 or held.err
  elseif string.sub(held, 1, #own) == own then
    replies[i] = redis.call('PEXPIRE', lock, ARGV[2 * i])
  else
    replies[i] = 2
  end
end
return replies
