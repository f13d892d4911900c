-- Compare and delete on the lock key alone: for a slot that is being migrated, where scripts on several keys fail.
-- Waiters are served by their next check.
-- KEYS  1 lock
-- ARGV  1 acquisition id
-- Reply 0 not held · 1 released
local held = redis.call('GET', KEYS[1])
if not held or string.sub(held, 1, #ARGV[1] + 1) ~= ARGV[1] .. '|' then return 0 end
return redis.call('DEL', KEYS[1])
