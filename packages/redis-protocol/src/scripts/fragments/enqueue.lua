-- Marks a lock as waited for, and a process as alive; needs clock and token. The liveness of a process is a member of
-- the queue with a negative score: `@<notify>` = minus the server ms until which it counts as alive.
local function mark(lock, held)
  local at = string.match(held, '^[%w_-]+()|%-|%d+|') or string.match(held, '^%*%d+|%d+()|%-|%d+|%d+$')
  -- SETRANGE keeps the ttl. A value that is not ours is never touched.
  if at then redis.call('SETRANGE', lock, at, '+') end
end
local function keep_alive(token, queue, notify, alive_ms, last, horizon)
  local until_ms = math.floor(now / 1000) + alive_ms
  redis.call('ZADD', queue, string.format('-%.0f', until_ms), '@' .. notify)
  if redis.call('PTTL', queue) < alive_ms then redis.call('PEXPIRE', queue, alive_ms) end
  write_token(token, last, math.max(horizon, until_ms))
end
