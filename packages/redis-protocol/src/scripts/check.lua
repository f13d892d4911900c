-- Once a second for the waiters of one process: keeps them in the queue and alive, moves on a queue whose lock is
-- free (expired, deleted, released by a stranger), and tells the grants of which no message came.
-- KEYS  for each resource: lock, token of the slot, queue
-- ARGV  1 `<aliveMs>|<former>|<notify>` · then for each resource: n, and n times: member, place
--       former: the first character of the notify under which these waiters stand in the queue so far, or nothing
-- Reply for each resource: a string: the error of this key
--       last                      all wait; a grant to come has a token above this number
--       {last, id, token, pttl}   this waiter of the caller holds it, the others wait
@include clock
@include token
@include hand-over
@include enqueue
local alive_ms, former, notify = string.match(ARGV[1], '^(%d+)|(.?)|(.*)$')
local mode, channel = string.sub(notify, 1, 1), string.sub(notify, 2)
-- It counts on being told, and nobody listens there: its connection is dead without knowing it. It would be passed over
-- at every hand-over; so until it listens again it waits silently, served by its checks.
local deaf = mode == '=' and redis.pcall('PUBSUB', 'NUMSUB', channel)[2] == 0
if deaf then notify = '!' .. channel end
if mode == '=' then former = deaf and '=' or '!' end
local function check(lock, token, queue, from, to)
  local held = redis.pcall('GET', lock)
  if type(held) == 'table' then return held.err end
  local holder = held and string.match(held, '^([%w_-]+)|[+-]|%d+|')
  local last, horizon = read_token(token)
  local reply = last
  local waiting = {}
  for i = from, to, 2 do
    local member = ARGV[i]
    if deaf then member = string.gsub(member, '^([^|]*|%d+|).', '%1!') end
    if former ~= '' then redis.call('ZREM', queue, (string.gsub(member, '^([^|]*|%d+|).', '%1' .. former))) end
    if holder and string.sub(ARGV[i], 1, #holder + 1) == holder .. '|' then
      reply = { last, holder, tonumber(string.match(held, '^[^|]*|[+-]|(%d+)|')), redis.call('PTTL', lock) }
    else
      -- With its old place: a queue that was lost (restart, failover, a waiter passed over) forms again in order.
      waiting[#waiting + 1] = ARGV[i + 1]
      waiting[#waiting + 1] = member
    end
  end
  if not waiting[1] then return reply end
  redis.call('ZADD', queue, 'NX', unpack(waiting))
  keep_alive(token, queue, notify, tonumber(alive_ms), last, horizon)
  if held then
    mark(lock, held)
    return reply
  end
  local handed = hand_over(lock, token, queue, notify)
  if type(handed) == 'table' then return { last, handed[1], handed[2], redis.call('PTTL', lock) } end
  return reply
end
local replies = {}
local at = 2
for i = 1, #KEYS, 3 do
  local to = at + 2 * ARGV[at]
  replies[#replies + 1] = check(KEYS[i], KEYS[i + 1], KEYS[i + 2], at + 1, to)
  at = to + 1
end
return replies
