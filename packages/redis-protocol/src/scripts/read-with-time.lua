-- Reads a value together with the time of the server.
-- KEYS  1 the key
-- Reply the value, or '' where there is none · the seconds since 1970 · the microseconds beyond them
local time = redis.call('TIME')
return { redis.call('GET', KEYS[1]) or '', time[1], time[2] }
