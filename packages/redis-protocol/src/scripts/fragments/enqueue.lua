-- Marks a lock as waited for, and a process as alive; needs clock and shares. The liveness of a process is a member of
-- the queue with a negative score: `@<reply address>` = minus the server ms until which it counts as alive.
local function note_waiters(lock, held)
  local at = string.match(held, '^[%w_-]+()|%-|%d+|') or string.match(held, '^%*%d+|%d+()|%-|%d+|%d+$')
  -- SETRANGE keeps the ttl. A value that is not ours is never touched.
  if at then redis.call('SETRANGE', lock, at, '+') end
end
-- A queue exists for so much longer than its processes count as alive: not each of many waiters that join moves its end.
local slack_ms = 1000
-- Adds waiters too, as `position, member, …`. Returns how many members are new. `is_kept`: the process has moved the end of
-- this queue within the interval of its checks, which do it again; if it is not in the queue after all, this is void.
local function keep_alive(queue, reply_address, alive_ms, is_refreshed, ...)
  -- LT: a waiter keeps the position that it has, and a process the latest end.
  local added = redis.call('ZADD', queue, 'LT', string.format('-%.0f', now_ms + alive_ms), '@' .. reply_address, ...)
  is_refreshed = is_refreshed and added < 2
  if not is_refreshed and redis.call('PTTL', queue) < alive_ms then redis.call('PEXPIRE', queue, alive_ms + slack_ms) end
  return added, is_refreshed
end
