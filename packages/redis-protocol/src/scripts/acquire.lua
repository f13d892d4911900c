-- One attempt: takes the lock if it is free and nobody waits, else (asked for) joins the queue. Idempotent by id.
-- KEYS  1 lock · 2 token of the slot · 3 queue · 4 holders, for other modes than exclusive
-- ARGV  1 acquisition id · 2 ttl ms · 3 label · 4 only to join the queue, else empty: `<aliveMs>[/<most waiters>]|<reply address>`, with `+` in
--       front if the caller has a waiter in this queue that it enqueued or checked within the interval of its checks
--       5, 6 only for other modes, or to steal: limit, 0 for a lock; weight, empty for exclusive, 0 for a reader
--       7 `steal`; or to adopt: the id whose exclusive hold it is
-- Reply token (a string)          granted, for the whole ttl
--       {token, ms left}          this id holds the lock
--       0                         contended; the attempt left nothing behind
--       {0, limit}                conflict with permits of this limit, with readers (0), with an exclusive hold (-1)
--       {0, -2}                   so many wait already
--       {-position, last, left}   waiting; position and last are numbers of the token counter: a later grant has a token
--                                 above `last`. left: ms until a hold can end by itself, negative if none does, or with `+`
--       … id, token, …            at the end of each of these lists: other waiters of the calling process that the lock
--                                 was handed to
local call = redis.call
local time = call('TIME')
local micros = time[2]
while #micros < 6 do micros = '0' .. micros end
local token = time[1] .. micros
-- Somebody waits then, and a fast path would only fail.
local is_refreshed = string.sub(ARGV[4] or '', 1, 1) == '+'
if not is_refreshed and not ARGV[5] then
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
elseif not is_refreshed and not ARGV[7] then
  -- Fast path of a share: nobody waits, no share has ended, and one more fits. A reader takes 7.5 µs of the server with it and
  -- 21 without, a permit 9 and 35 (Redis 7.0).
  -- Converting between numbers and strings is slow in Lua: each value keeps the type that it is used as.
  local ttl, weight = ARGV[2], ARGV[6]
  local is_reader = weight == '0'
  local is_permit = not is_reader and weight ~= ''
  local held = call('GET', KEYS[1])
  local now_ms = time[1] .. string.sub(micros, 1, 3)
  local ends = now_ms + ttl
  local limit, used, first, last = ARGV[5], 0, nil, 0
  if held then
    limit, used, first, last = string.match(held, '^%*(%d+)|(%d+)|%-|(%d+)|(%d+)$')
    first, last = tonumber(first), tonumber(last)
  end
  local fits = limit == ARGV[5] and (is_reader or is_permit and used + weight <= limit + 0)
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
local weight = ARGV[6] or exclusive_weight
local request = {
  lock = KEYS[1], token = KEYS[2], queue = KEYS[3],
  id = ARGV[1], label = ARGV[3], limit = (ARGV[5] or reader_limit) + 0, weight = weight,
}
local alive_ms, most, reply_address = string.match(ARGV[4] or '', '^%+?(%d+)/?(%d*)|(.*)$')
local function reply(served, ...)
  local list = { ... }
  for i = 1, #served, 2 do
    if served[i] ~= request.id then
      list[#list + 1] = served[i]
      list[#list + 1] = served[i + 1]
    end
  end
  return list
end
local steals = ARGV[7]
local served, own_token, left
if steals then
  served, own_token, left = {}, read_state(request)
else
  served, own_token, left = serve_and_read(request, reply_address or '')
end
if own_token then return reply(served, own_token, left) end
if steals and steals ~= 'steal' and (not is_exclusive(request.held) or string.match(request.held, '^[^|]*') ~= steals) then return 0 end
-- A limit that lives here. A steal ends those who hold, so it contradicts waiters only.
local conflict_limit = not steals and (request.mark and request.mark.limit or is_exclusive(request.held) and exclusive_limit)
if not conflict_limit and queued(request) then conflict_limit = -(call('ZSCORE', request.queue, '#') or 1) end
local member_ttl = ARGV[2] .. (weight == exclusive_weight and '' or ':' .. weight)
local member = reply_address and request.id .. '|' .. member_ttl .. '|' .. reply_address .. '|' .. request.label
-- Who waits already goes on waiting, although `resize` has changed the limit since.
if conflict_limit and math.max(conflict_limit, 0) ~= request.limit and not (member and call('ZSCORE', request.queue, member)) then
  return reply(served, 0, conflict_limit)
end
local taken
if steals then
  clear(request.holders)
  call('DEL', request.lock)
  request.mark = nil
  taken = take(request, ARGV[2])
  if weight ~= exclusive_weight and queued(request) then
    served = hand_off(request.lock, request.token, request.queue, reply_address or '', request.mark) or served
  end
elseif free_for(request) then
  taken = take(request, ARGV[2])
end
if taken then return served[1] and reply(served, tonumber(taken), ARGV[2] + 0) or taken end
if not member then return 0 end
-- Positions are above 0, the other members of the queue below.
local function is_full()
  return call('ZCOUNT', request.queue, 0, '+inf') >= most + 0
end
if most ~= '' and is_full() and not call('ZSCORE', request.queue, member) then
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
  if is_full() then return reply(served, 0, full_limit) end
end
alive_ms = alive_ms + 0
local last = next_token(request.token, now_ms + math.max(queue_ms, alive_ms + slack_ms))
local position = string.format('%.0f', last)
if request.limit ~= reader_limit then call('ZADD', request.queue, 'NX', -(request.mark and request.mark.limit or request.limit), '#') end
local added
added, is_refreshed = keep_alive(request.queue, reply_address, alive_ms, is_refreshed, position, member)
-- A repeated attempt: its process is in the queue already, and so is it.
position = added > 0 and position or call('ZSCORE', request.queue, member)
if request.held then note_waiters(request.lock, request.held) end
return reply(served, -position, last, is_refreshed and -1 or ends_in(request.lock, request.mark))
