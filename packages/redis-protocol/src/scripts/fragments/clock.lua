-- now: the server's time in microseconds. Every deadline, liveness and token goes by it, never by a client's clock.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
