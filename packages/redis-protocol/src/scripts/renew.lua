-- Pushes back the ends of many leases. Touches lock keys only; works while memory is full.
-- KEYS  n locks
-- ARGV  for each lock: the beginning of its value while nobody waits, `<id>|-|<token>|`; ttl ms
-- Reply for each lock: 1 renewed · 0 nobody holds · 2 another grant holds · a string: the error of this key
local replies = {}
for i, lock in ipairs(KEYS) do
  local held = redis.pcall('GET', lock)
  local own = ARGV[2 * i - 1]
  if not held then
    replies[i] = 0
  elseif type(held) == 'table' then
    replies[i] = string.find(held.err, '^WRONGTYPE') and 2 or held.err
  else
    -- The token too: an id that held before, and was handed the lock again since, holds by another grant.
    local start = string.sub(held, 1, #own)
    if start ~= own then
      local flag = string.find(own, '|', 1, true) + 1
      start = string.sub(start, 1, flag - 1) .. '-' .. string.sub(start, flag + 1)
    end
    replies[i] = start == own and redis.call('PEXPIRE', lock, ARGV[2 * i]) or 2
  end
end
return replies
