-- One attempt: takes the lock if it is free and nobody waits, else (asked for) joins the queue. Idempotent by id.
-- KEYS  1 lock · 2 token of the slot · 3 queue · 4 holders, for other modes than exclusive
-- ARGV  1 acquisition id · 2 ttl ms · 3 label
--       4 reply address, only to join the queue; else empty, as 5 to 7 then are
--       5 for how many ms the process of the caller counts as alive · 6 the most waiters, or empty
--       7 `refreshed`: the caller has a waiter in this queue that it enqueued or checked within the interval of its checks
--       8, 9 only for other modes, or to take: limit, 0 for a lock; weight, empty for exclusive, 0 for a reader
--       10 `steal`, or `adopt` with 11 the id whose exclusive hold it is
-- Reply a token alone                         granted, for the whole ttl: a list would cost a seventh of the fast path
--       'granted', token, ms left             this id holds the lock
--       'contended'                           the attempt left nothing behind
--       'conflict', limit                     with permits of this limit, with readers (0), with an exclusive hold (-1)
--       'reached-max-waiters'                 so many wait already
--       'waiting', position, last, left       numbers of the token counter: a later grant has a token above `last`. left: ms
--                                             until a hold can end by itself, negative if none does, or with `refreshed`
--       …, id, token, …                       at the end of each: other waiters of the calling process that hold the lock now
local call = redis.call
local time = call('TIME')
local micros = time[2]
while #micros < 6 do micros = '0' .. micros end
local token = time[1] .. micros
-- Somebody waits then, and a fast path would only fail.
local is_refreshed = ARGV[7] == 'refreshed'
if not is_refreshed and not ARGV[8] then
  -- Fast path: the lock was free, and the token key shows a smaller plain number, so no queue can exist in this slot. It takes
  -- 4 µs of the server, the slow path 12 (Redis 7.0).
  local taken = call('SET', KEYS[1], ARGV[1] .. '|-|' .. token .. '|' .. ARGV[3], 'NX', 'PX', ARGV[2])
  if taken then
    local before = redis.pcall('GETSET', KEYS[2], token)
    if not before or (#before == #token and before < token) then return token end
    -- Other clients see nothing of a script before its end: put both keys back and take the slow path.
    if type(before) == 'string' then call('SET', KEYS[2], before) end
    call('DEL', KEYS[1])
  end
elseif not is_refreshed and not ARGV[10] then
  -- Fast path of a share: nobody waits, no share has ended, and one more fits. A reader takes 7.5 µs of the server with it and
  -- 21 without, a permit 9 and 35 (Redis 7.0).
  -- Converting between numbers and strings is slow in Lua: each value keeps the type that it is used as.
  local ttl, weight = ARGV[2], ARGV[9]
  local is_reader = weight == '0'
  local is_permit = not is_reader and weight ~= ''
  local held = call('GET', KEYS[1])
  local now_ms = time[1] .. string.sub(micros, 1, 3)
  local ends = now_ms + ttl
  local limit, used, first, last = ARGV[8], 0, nil, 0
  if held then
    limit, used, first, last = string.match(held, '^%*(%d+)|(%d+)|%-|(%d+)|(%d+)$')
    first, last = tonumber(first), tonumber(last)
  end
  local fits = limit == ARGV[8] and (is_reader or is_permit and used + weight <= limit + 0)
  if fits and (not held or first > ends - ttl) then
    local before = redis.pcall('GETSET', KEYS[2], token)
    if not before or (#before == #token and before < token) then
      if not held and call('HLEN', KEYS[4]) > 0 then call('DEL', KEYS[4]) end
      local share = now_ms .. '|' .. ttl .. '|' .. token .. '|' .. weight .. '|' .. ARGV[3]
      if call('HSETNX', KEYS[4], ARGV[1], share) == 1 then
        local longest = ends > last
        local shortest = not held or ends < first
        if longest or shortest or not is_reader then
          local value = '*' .. limit .. '|' .. used + weight .. '|-|' .. (shortest and ends or first) .. '|'
          if longest then
            local ahead = math.floor(ttl / 8)
            call('SET', KEYS[1], value .. ends + ahead, 'PX', ttl + ahead)
            call('PEXPIRE', KEYS[4], ttl + ahead + 120000)
          else
            call('SET', KEYS[1], value .. last, 'KEEPTTL')
          end
        end
        return token
      end
    elseif type(before) == 'string' then
      call('SET', KEYS[2], before)
    end
  end
end
local now = time[1] * 1000000 + time[2]
@include token
@include shares
@include hand-off
@include enqueue
@include attempt
local weight = ARGV[9] or exclusive_weight
local request = {
  lock = KEYS[1], token = KEYS[2], queue = KEYS[3],
  id = ARGV[1], label = ARGV[3], limit = (ARGV[8] or reader_limit) + 0, weight = weight,
}
local reply_address, most = ARGV[4] or '', ARGV[6] or ''
local joins = reply_address ~= ''
-- The reply, with the hand-offs to other waiters of the calling process at its end.
local function reply(served, ...)
  local list = { ... }
  for i = 2, #served, 2 do
    if served[i] ~= request.id then
      list[#list + 1] = served[i]
      list[#list + 1] = served[i + 1]
    end
  end
  return list
end
local takes_over = ARGV[10] ~= nil
local served, own_token, left
if takes_over then
  served, own_token, left = {}, read_state(request)
else
  served, own_token, left = serve_and_read(request, reply_address)
end
if own_token then return reply(served, 'granted', own_token, left) end
if ARGV[10] == 'adopt' and (not is_exclusive(request.held) or string.match(request.held, '^[^|]*') ~= ARGV[11]) then return 'contended' end
-- The limit that lives here. A steal ends all holds, so it contradicts waiters only.
local conflict_limit = not takes_over and (request.mark and request.mark.limit or is_exclusive(request.held) and exclusive_limit)
if not conflict_limit and queued(request) then conflict_limit = -(call('ZSCORE', request.queue, '#') or 1) end
local member_ttl = ARGV[2] .. (weight == exclusive_weight and '' or ':' .. weight)
local member = joins and request.id .. '|' .. member_ttl .. '|' .. reply_address .. '|' .. request.label
-- A waiter goes on waiting, although `resize` has changed the limit since it joined.
if conflict_limit and math.max(conflict_limit, 0) ~= request.limit and not (member and call('ZSCORE', request.queue, member)) then
  -- A steal that is refused serves the queue like any other attempt.
  if takes_over then served = serve_and_read(request, reply_address) end
  return reply(served, 'conflict', conflict_limit)
end
local taken
if takes_over then
  clear(request.holders)
  call('DEL', request.lock)
  request.mark = nil
  taken = take(request, ARGV[2])
  if weight ~= exclusive_weight and queued(request) then
    served = hand_off(request.lock, request.token, request.queue, reply_address, request.mark, 'served') or served
  end
elseif free_for(request) then
  taken = take(request, ARGV[2])
end
if taken then return served[2] and reply(served, 'granted', tonumber(taken), ARGV[2] + 0) or taken end
if not joins then return 'contended' end
-- Positions are above 0, the other members of the queue below.
local function has_reached_max_waiters()
  return call('ZCOUNT', request.queue, 0, '+inf') >= most + 0
end
if most ~= '' and has_reached_max_waiters() and not call('ZSCORE', request.queue, member) then
  -- Processes that died and their waiters do not count, and are removed. The number bounds out `#`, which is no process.
  local died = {}
  local own_process = string.match(reply_address, '^.([^{]*)')
  for _, process in ipairs(call('ZRANGEBYSCORE', request.queue, string.format('(-%.0f', now_ms), '-100000000000')) do
    if string.match(process, '^@.([^{]*)') ~= own_process then died[string.sub(process, 2)] = process end
  end
  if next(died) then
    for _, waiter in ipairs(call('ZRANGEBYSCORE', request.queue, 0, '+inf')) do
      if died[string.match(waiter, '^[^|]*|[^|]*|([^|]*)|') or ''] then call('ZREM', request.queue, waiter) end
    end
    for _, process in pairs(died) do call('ZREM', request.queue, process) end
  end
  if has_reached_max_waiters() then return reply(served, 'reached-max-waiters') end
end
local alive_ms = ARGV[5] + 0
local last = next_token(request.token, now_ms + math.max(queue_ms, alive_ms + slack_ms))
local position = string.format('%.0f', last)
if request.limit ~= reader_limit then call('ZADD', request.queue, 'NX', -(request.mark and request.mark.limit or request.limit), '#') end
local added
added, is_refreshed = keep_alive(request.queue, reply_address, alive_ms, is_refreshed, position, member)
-- A repeated attempt: its process is in the queue already, and so is it.
position = added > 0 and position or call('ZSCORE', request.queue, member)
if request.held then note_waiters(request.lock, request.held) end
return reply(served, 'waiting', position + 0, last, is_refreshed and -1 or ends_in(request.lock, request.mark))
