-- One attempt: takes the lock if it is free and nobody waits, else (asked for) joins the queue. Idempotent by id.
-- KEYS  1 lock · 2 token of the slot · 3 queue
-- ARGV  1 acquisition id · 2 ttl ms · 3 label · 4 only to join the queue: `<aliveMs>|<claimMs>|<notify>`
-- Reply token (a string)          granted, for the whole ttl
--       {token, pttl}             this id holds it already
--       0                         contended, nothing was left
--       {-place, last}            waiting; both are numbers of the token counter: a grant to come has a token above `last`
--       {-place, last, id, token} waiting, and another waiter of this very process was handed the lock
local call = redis.call
local time = call('TIME')
local micros = time[2]
while #micros < 6 do micros = '0' .. micros end
local token = time[1] .. micros
-- Fast path: taken, and the token key shows a smaller plain number, so that no queue can exist in this slot.
local taken = call('SET', KEYS[1], ARGV[1] .. '|-|' .. token .. '|' .. ARGV[3], 'NX', 'PX', ARGV[2])
if taken then
  local before = redis.pcall('GETSET', KEYS[2], token)
  if not before or (#before == #token and before < token) then return token end
  -- Nothing that happens inside a script is seen before its end: put both back and look closer.
  if type(before) == 'string' then call('SET', KEYS[2], before) end
  call('DEL', KEYS[1])
end
local now = time[1] * 1000000 + time[2]
@include token
@include hand-over
@include enqueue
local function take(last, horizon)
  last = math.max(last + 1, now)
  token = string.format('%.0f', last)
  call('SET', KEYS[1], ARGV[1] .. '|-|' .. token .. '|' .. ARGV[3], 'PX', ARGV[2])
  write_token(KEYS[2], last, horizon)
  return token
end
-- Another type at the lock key is an error here, never overwritten.
local held = call('GET', KEYS[1])
if held and string.sub(held, 1, #ARGV[1] + 1) == ARGV[1] .. '|' then
  return { tonumber(string.match(held, '^[^|]*|[+-]|(%d+)|')), redis.call('PTTL', KEYS[1]) }
end
local last, horizon = read_token(KEYS[2])
local queued = horizon * 1000 > now and redis.call('EXISTS', KEYS[3]) == 1
if not held and not queued then
  return take(last, horizon)
end
if not ARGV[4] then
  if held or hand_over(KEYS[1], KEYS[2], KEYS[3], '') then return 0 end
  return take(read_token(KEYS[2]))
end
local alive_ms, claim_ms, notify = string.match(ARGV[4], '^(%d+)|(%d+)|(.*)$')
local member = ARGV[1] .. '|' .. math.min(ARGV[2], claim_ms) .. '|' .. notify .. '|' .. ARGV[3]
local place = redis.call('ZSCORE', KEYS[3], member)
if place then
  place = tonumber(place)
else
  last = math.max(last + 1, now)
  place = last
  redis.call('ZADD', KEYS[3], string.format('%.0f', place), member)
end
keep_alive(KEYS[2], KEYS[3], notify, tonumber(alive_ms), last, horizon)
if held then
  mark(KEYS[1], held)
  return { -place, last }
end
local handed = hand_over(KEYS[1], KEYS[2], KEYS[3], notify)
if type(handed) ~= 'table' then return { -place, last } end
if handed[1] ~= ARGV[1] then return { -place, last, handed[1], handed[2] } end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return { handed[2], tonumber(ARGV[2]) }
