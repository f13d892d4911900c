-- The part of a release that needs the lock key alone, for a slot that is being migrated, where scripts on several keys
-- fail. Ends an exclusive hold. In a mark, notes that shares may have ended: the next script that reads it counts them
-- again. Waiters are served by their next check.
-- KEYS  1 lock
-- ARGV  1 acquisition id
-- Reply 'not-held' · 'released'
local held = redis.call('GET', KEYS[1])
if not held then return 'not-held' end
if string.sub(held, 1, #ARGV[1] + 1) == ARGV[1] .. '|' then
  redis.call('DEL', KEYS[1])
  return 'released'
end
local mark, last = string.match(held, '^(%*%d+|%d+|[+-]|)%d+(|%d+)$')
if mark then redis.call('SET', KEYS[1], mark .. '0' .. last, 'KEEPTTL') end
return 'not-held'
