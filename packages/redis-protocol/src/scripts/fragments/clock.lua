-- `now` is the server's time in microseconds. Every deadline, liveness and token uses it, never a client's clock.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
