-- The token key holds `<last>` or `<last>;<horizon>`: the last number given out in this slot, and until when (server ms)
-- queues may exist in the slot. An unreadable value counts as absent, which is safe: a token is never below the time. So does a
-- number that Lua does not tell from the next one: only a stranger writes it.
local function parse_token(stored)
  local last, horizon
  if type(stored) == 'string' then last, horizon = string.match(stored, '^(%d+);?(%d*)$') end
  last = tonumber(last or '0')
  if last > 9007199254740990 then last = 0 end
  return last, tonumber(horizon or '0') or 0
end
local function format_token(last, horizon)
  return string.format(horizon * 1000 > now and '%.0f;%.0f' or '%.0f', last, horizon)
end
-- For how long a queue may exist after a script touched it, with the default options: all scripts write the same horizon
-- then, and none writes it again because a later one stood there.
local queue_ms = 4000
-- Gives out the next number, and keeps the later horizon, this one or the one that stands there. Returns both.
local function next_token(key, horizon)
  local before = redis.pcall('GETSET', key, format_token(now, horizon))
  local last, kept = parse_token(before)
  -- GETSET fails on a key of another type.
  if last < now and kept <= horizon and type(before) ~= 'table' then return now, horizon end
  last, horizon = math.max(last + 1, now), math.max(kept, horizon)
  redis.call('SET', key, format_token(last, horizon))
  return last, horizon
end
