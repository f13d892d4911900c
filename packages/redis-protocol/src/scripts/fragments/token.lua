-- The token key holds `<last>` or `<last>;<horizon>`: the last number given out in this slot, and until when (server ms)
-- queues may exist in the slot. An unreadable value counts as absent, which is safe: a token is never below the time.
local function read_token(key)
  local stored = redis.pcall('GET', key)
  local last, horizon
  if type(stored) == 'string' then last, horizon = string.match(stored, '^(%d+);?(%d*)$') end
  return tonumber(last or '0'), tonumber(horizon or '0') or 0
end
local function write_token(key, last, horizon)
  local text = string.format('%.0f', last)
  if horizon * 1000 > now then text = text .. ';' .. string.format('%.0f', horizon) end
  redis.call('SET', key, text)
end
