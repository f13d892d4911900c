-- One attempt: takes the lock if it is free and nobody waits, else (asked for) joins the queue. Idempotent by id.
-- KEYS  1 lock · 2 token of the slot · 3 queue · 4 holders, for other modes than exclusive
-- ARGV  1 acquisition id · 2 ttl ms · 3 label · 4 only to join the queue, else empty: `<aliveMs>|<claimMs>|<notify>`
--       5 only for other modes, or to steal: `<limit>:<weight>`, limit 0 for a lock, weight empty for exclusive, 0 for
--       a reader · 6 only to steal: anything
-- Reply token (a string)          granted, for the whole ttl
--       {token, ms left}          this id holds it
--       0                         contended, nothing was left
--       {0, limit}                conflict with permits of this limit, with readers (0), with an exclusive hold (-1)
--       {-place, last}            waiting; both are numbers of the token counter: a grant to come has a token above `last`
--       … id, token, …            behind each of these lists: other waiters of this very process that were handed it
local call = redis.call
local time = call('TIME')
local micros = time[2]
while #micros < 6 do micros = '0' .. micros end
local token = time[1] .. micros
if not ARGV[5] then
  -- Fast path: taken, and the token key shows a smaller plain number, so that no queue can exist in this slot.
  local taken = call('SET', KEYS[1], ARGV[1] .. '|-|' .. token .. '|' .. ARGV[3], 'NX', 'PX', ARGV[2])
  if taken then
    local before = redis.pcall('GETSET', KEYS[2], token)
    if not before or (#before == #token and before < token) then return token end
    -- Nothing that happens inside a script is seen before its end: put both back and look closer.
    if type(before) == 'string' then call('SET', KEYS[2], before) end
    call('DEL', KEYS[1])
  end
elseif not ARGV[6] then
  -- The same for one more share where nobody waits, none has ended and there is room.
  local asked, weight = string.match(ARGV[5], '^(%d+):(%d+)$')
  local held = call('GET', KEYS[1])
  local limit, used, first, last, id = string.match(held or '', '^%*(%d+)|(%d+)|%-|(%d+)|(%d+)|(.*)$')
  local now_ms = time[1] .. string.sub(micros, 1, 3)
  -- Numbers are dear to turn into text: what is text already is passed on as it is.
  local ends = string.format('%.0f', now_ms + ARGV[2])
  if not held then limit, used, first, last = asked, '0', ends, ends end
  if weight and limit == asked and used + weight <= asked + 0 and first + 0 > now_ms + 0 then
    local before = redis.pcall('GETSET', KEYS[2], token)
    if not before or (#before == #token and before < token) then
      if not held and call('ZCARD', KEYS[4]) > 0 then call('DEL', KEYS[4]) end
      local share = '#' .. ARGV[1] .. '|' .. weight .. '|' .. ARGV[3]
      if call('ZADD', KEYS[4], 'NX', ends, share, token, '$' .. ARGV[1]) == 2 then
        local longest = not held or ends + 0 > last + 0
        local shortest = ends + 0 < first + 0
        -- A reader that ends in the same millisecond as the longest changes nothing in the mark.
        if longest or shortest or weight ~= '0' then
          if weight ~= '0' then used = used + weight end
          local mark = '*' .. limit .. '|' .. used .. '|-|' .. (shortest and ends or first) .. '|'
          if longest then
            call('SET', KEYS[1], mark .. ends .. '|' .. ARGV[1], 'PX', ARGV[2])
            -- As in `settle`: two minutes longer than the mark, so once a minute is enough.
            if not held or math.floor(ends / 60000) > math.floor(last / 60000) then
              call('PEXPIRE', KEYS[4], ARGV[2] + 120000)
            end
          else
            call('SET', KEYS[1], mark .. last .. '|' .. id, 'KEEPTTL')
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
@include hand-over
@include enqueue
@include attempt
local asked, weight = string.match(ARGV[5] or '0:', '^(%d+):(%d*)$')
local r = { lock = KEYS[1], token = KEYS[2], queue = KEYS[3], id = ARGV[1], label = ARGV[3], asked = asked + 0, weight = weight }
local alive_ms, claim_ms, notify = string.match(ARGV[4] or '', '^(%d+)|(%d+)|(.*)$')
local function reply(served, first, second)
  local list = { first, second }
  for i = 1, #served, 2 do
    if served[i] ~= r.id then
      list[#list + 1] = served[i]
      list[#list + 1] = served[i + 1]
    end
  end
  return list
end
if ARGV[6] then
  local holds, left = look(r)
  if holds then return { holds, left } end
  clear(r.holders)
  call('DEL', r.lock)
  r.limit = nil
  token = take(r, ARGV[2])
  local beside = r.queued and weight ~= '' and hand_over(r.lock, r.token, r.queue, notify or '', r.asked, weight)
  return beside and reply(beside, tonumber(token), ARGV[2] + 0) or token
end
local served, holds, left = look_and_serve(r, notify or '')
if holds then return reply(served, holds, left) end
local member, place
if notify then
  member = r.id .. '|' .. math.min(ARGV[2], claim_ms) .. (weight == '' and '' or ':' .. weight) .. '|' .. notify .. '|' .. r.label
  place = call('ZSCORE', r.queue, member)
end
if not place then
  local with = r.limit
  if not with and r.held and string.find(r.held, '^[%w_-]+|[+-]|%d+|') then with = -1 end
  if not with and r.queued then with = -(call('ZSCORE', r.queue, '#') or 1) end
  if with and math.max(with, 0) ~= r.asked then return reply(served, 0, with) end
  if free_for(r) then
    token = take(r, ARGV[2])
    return served[1] and reply(served, tonumber(token), ARGV[2] + 0) or token
  end
end
if not notify then return 0 end
local last = r.last
if place then
  place = tonumber(place)
else
  last = math.max(last + 1, now)
  place = last
  call('ZADD', r.queue, string.format('%.0f', place), member)
  if r.asked > 0 then call('ZADD', r.queue, 'NX', -(r.limit or r.asked), '#') end
end
keep_alive(r.token, r.queue, notify, tonumber(alive_ms), last, r.horizon)
if r.held then mark(r.lock, r.held) end
return reply(served, -place, last)
