-- Marks a lock as waited for, and a process as alive; needs clock and token. The liveness of a process is a member of
-- the queue with a negative score: `@<notify>` = minus the server ms until which it counts as alive.
local function mark(lock, held)
  local at = string.match(held, '^[%w_-]+()|%-|%d+|') or string.match(held, '^%*%d+|%d+()|%-|%d+|%d+$')
  -- SETRANGE keeps the ttl. A value that is not ours is never touched.
  if at then redis.call('SETRANGE', lock, at, '+') end
end
-- Adds waiters too, as `position, member, …`. Returns how many members are new.
local function keep_alive(token, queue, notify, alive_ms, last, horizon, ...)
  local until_ms = math.floor(now / 1000) + alive_ms
  -- LT: a waiter keeps the position that it has, and a process the latest end.
  local added = redis.call('ZADD', queue, 'LT', string.format('-%.0f', until_ms), '@' .. notify, ...)
  -- A second longer than needed, so that not each of many waiters that join moves the end.
  if redis.call('PTTL', queue) < alive_ms then redis.call('PEXPIRE', queue, alive_ms + 1000) end
  write_token(token, last, math.max(horizon, until_ms + 1000))
  return added
end
