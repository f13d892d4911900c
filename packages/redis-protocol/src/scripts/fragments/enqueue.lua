-- Keeps waiters in the queue of a lock; needs clock and token. `members` is `{score, member, …}`.
-- Negative scores hold liveness: `@<notify>` = minus the server ms until which that process counts as alive.
local function mark(lock, held)
  local at = string.match(held, '^[%w_-]+()|%-|%d+|') or string.match(held, '^%*%d+|%d+()|%-|%d+|%d+$')
  -- Flips the flag in place, which keeps the ttl; a value that is not ours is never touched.
  if at then redis.call('SETRANGE', lock, at, '+') end
end
local function keep_alive(token, queue, notify, alive_ms, last, horizon)
  local until_ms = math.floor(now / 1000) + alive_ms
  redis.call('ZADD', queue, string.format('-%.0f', until_ms), '@' .. notify)
  if redis.call('PTTL', queue) < alive_ms then redis.call('PEXPIRE', queue, alive_ms) end
  write_token(token, last, math.max(horizon, until_ms))
end
