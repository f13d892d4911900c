-- The heartbeat of the waiters of one process, sent once a second: keeps them in the queue and alive, removes shares
-- that have ended, serves a queue whose lock is free (expired, deleted, released by a stranger) or has capacity left, and
-- reports grants whose message was lost.
-- KEYS  for each resource: lock, token of the slot, queue
-- ARGV  1 for how many ms the process counts as alive · 2 its reply address · 3 the reply address that these waiters have in
--       the queue so far, if it is another one, else empty
--       then for each resource: n, and n times: member, position, limit, which is empty for all modes but permits
-- Reply for each resource: {'failed', error of its keys}
--       {'checked', last, left, …}       a later grant has a token above `last`. left: ms until a hold can end by itself,
--                                        negative if none does
--       … id, token, ms left, …          at its end: these waiters of the caller's process hold the lock; the others wait
@include clock
@include token
@include shares
@include hand-off
@include enqueue
local alive_ms, reply_address, former = ARGV[1] + 0, ARGV[2], ARGV[3]
local mode = string.sub(reply_address, 1, 1)
-- What these waiters may have in the queue in place of `reply_address`.
local others = { former ~= '' and former or nil }
if mode == to_channel or mode == to_shard then
  local silent = to_nobody .. string.match(reply_address, '^.([^{]*)')
  -- The calling process expects messages on its channel, but nobody listens there: its connection is dead, and it does not
  -- know yet. Every hand-off would pass its waiters over, so until it listens again they wait silently and are served by
  -- its checks.
  if not listens(mode, string.sub(reply_address, 2)) then reply_address, silent = silent, reply_address end
  others[#others + 1] = silent
end
local function check(lock, token, queue, from, to)
  -- The first write: Redis allows a removal, here of nothing, when memory is full, and then the writes after it.
  redis.call('ZREM', queue, '')
  local holders = string.sub(queue, 1, -2) .. 'h'
  local held, mark = remove_ended(lock, holders, redis.call('GET', lock))
  local holder = held and string.match(held, '^([%w_-]+)|[+-]|%d+|')
  local last, horizon = parse_token(redis.pcall('GET', token))
  local reply = { 'checked', last, -1 }
  local function report(id, held_token, left)
    for _, value in ipairs({ id, tonumber(held_token), left }) do reply[#reply + 1] = value end
  end
  local waiting, moved, times, asked_limit = {}, {}, {}, nil
  for i = from, to, 3 do
    local member = ARGV[i]
    local start, id, ttl, label = string.match(member, '^(([^|]*)|(%d+)[^|]*|)[^|]*(.*)$')
    local position, limit = ARGV[i + 1], ARGV[i + 2]
    for _, other in ipairs(others) do moved[#moved + 1] = start .. other .. label end
    local ends, held_token
    if mark then ends, held_token = find_share(holders, id) end
    if ends then
      report(id, held_token, ends - now_ms)
    elseif holder == id then
      report(id, string.match(held, '^[^|]*|[+-]|(%d+)|'), redis.call('PTTL', lock))
    else
      -- At its old position: a queue that was lost (restart, failover, a waiter passed over) forms again in order.
      waiting[#waiting + 1] = position
      waiting[#waiting + 1] = start .. reply_address .. label
      times[id] = ttl + 0
      if limit ~= '' then asked_limit = limit end
    end
  end
  if moved[1] then redis.call('ZREM', queue, unpack(moved)) end
  if waiting[1] then
    -- NX: `resize` may have changed the limit in the queue. Readers, whose limit is 0, may have come since the waiters of
    -- permits were passed over; then these wait for their end, with the limit that they asked for.
    if asked_limit then redis.call('ZADD', queue, 'NX', -(mark and mark.limit ~= reader_limit and mark.limit or asked_limit), '#') end
    keep_alive(queue, reply_address, alive_ms, false, unpack(waiting))
    redis.call('SET', token, format_token(last, math.max(horizon, now_ms + alive_ms + slack_ms)))
    if held and not mark then
      note_waiters(lock, held)
    else
      local handed = hand_off(lock, token, queue, reply_address, mark, 'checked', true) or {}
      for i = 2, #handed, 2 do report(handed[i], handed[i + 1], times[handed[i]] or 0) end
    end
    reply[3] = ends_in(lock, mark)
  end
  return reply
end
local replies = {}
local at = 4
for i = 1, #KEYS, 3 do
  local to = at + 3 * ARGV[at]
  local is_done, reply = pcall(check, KEYS[i], KEYS[i + 1], KEYS[i + 2], at + 1, to)
  replies[#replies + 1] = is_done and reply or { 'failed', type(reply) == 'table' and reply.err or reply }
  at = to + 1
end
return replies
