-- Pushes back the ends of many leases. Touches lock keys only; works while memory is full.
-- KEYS  n locks
-- ARGV  for each lock: the beginning of its value while nobody waits, `<id>|-|<token>|`; ttl ms
-- Reply for each lock: a number of renewal-replies.lua · a string: the error of this key
@include renewal-replies
local replies = {}
for i, lock in ipairs(KEYS) do
  local held = redis.pcall('GET', lock)
  local own = ARGV[2 * i - 1]
  if not held then
    replies[i] = nobody_holds
  elseif type(held) == 'table' then
    replies[i] = string.find(held.err, '^WRONGTYPE') and another_holds or held.err
  else
    -- The token too: an id that held before, and was handed the lock again since, holds by another grant.
    local start = string.sub(held, 1, #own)
    if start ~= own then
      local flag = string.find(own, '|', 1, true) + 1
      start = string.sub(start, 1, flag - 1) .. '-' .. string.sub(start, flag + 1)
    end
    replies[i] = start == own and redis.call('PEXPIRE', lock, ARGV[2 * i]) or another_holds
  end
end
return replies
