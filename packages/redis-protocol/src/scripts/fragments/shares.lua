-- Readers and permits; needs clock. While any of them holds, the lock key is the mark
-- `*<limit>|<used>|<flag>|<first>|<last>`. Limit 0: readers; used: permits taken; flag as in exclusive values; no share
-- ends before `first` or after `last` (server ms), when the mark goes by itself. Both are bounds only, `last` an eighth
-- of a ttl ahead, so that most shares are added, removed and renewed without a write to the mark.
-- The holders key is a hash: `<id>` = `<from>|<ttl>|<token>|<weight>|<label>`, a share that ends at from + ttl (server
-- ms). The holders count only while the mark exists.
local now_ms = math.floor(now / 1000)
-- The weights that are no permit's, and the limits that are no semaphore's.
local exclusive_weight, reader_weight = '', '0'
local exclusive_limit, reader_limit = -1, 0
local function parse_mark(held)
  local limit, used, flag, first, last = string.match(held or '', '^%*(%d+)|(%d+)|([+-])|(%d+)|(%d+)$')
  return limit and { limit = limit + 0, used = used + 0, flag = flag, first = first + 0, last = last + 0 }
end
-- Whether the value of a lock key is that of an exclusive hold, which no stranger wrote.
local function is_exclusive(held)
  return held and string.find(held, '^[%w_-]+|[+-]|%d+|')
end
-- Returns when the share ends, its token and its weight.
local function parse_share(value)
  local from, ttl, token, weight = string.match(value or '', '^(%d+)|(%d+)|(%d+)|(%d+)|')
  if from then return from + ttl, token, weight end
end
local function find_share(holders, id)
  return parse_share(redis.call('HGET', holders, id))
end
local function extend(mark, ends, ttl)
  mark.first = math.min(mark.first or ends, ends)
  if ends > (mark.last or 0) then mark.last = ends + math.floor(ttl / 8) end
end
local function add_share(holders, mark, id, ttl, token, weight, label)
  local share = now_ms .. '|' .. ttl .. '|' .. token .. '|' .. weight .. '|' .. label
  -- An id that stood in the queue twice takes its weight once.
  if redis.call('HSET', holders, id, share) == 1 then mark.used = mark.used + weight end
  extend(mark, now_ms + ttl, ttl)
end
-- Starts the ttl of a share again. Returns whether the share still lives.
local function renew_share(holders, id, token, ttl)
  local share = redis.call('HGET', holders, id)
  local ends, held_token = parse_share(share)
  if not ends or ends <= now_ms or held_token ~= token then return false end
  -- PEXPIRE is the first write: Redis allows it when memory is full, and then the writes after it.
  redis.call('PEXPIRE', holders, math.max(redis.call('PTTL', holders), 2 * ttl + 120000))
  redis.call('HSET', holders, id, now_ms .. '|' .. ttl .. string.match(share, '^%d+|%d+(.*)$'))
  return true
end
-- Deletes the shares left over from a lost mark. Fails on a key of another type, which is not ours to delete.
local function clear(holders)
  if redis.call('HLEN', holders) > 0 then redis.call('DEL', holders) end
end
-- Writes the mark and returns it; deletes it and returns `nil` if nobody holds.
local function write_mark(lock, holders, mark, flag)
  if redis.call('HLEN', holders) == 0 then
    redis.call('DEL', lock)
    return
  end
  local left = mark.last - now_ms
  local value = '*' .. mark.limit .. '|' .. mark.used .. '|' .. flag .. '|' .. mark.first .. '|' .. mark.last
  redis.call('SET', lock, value, 'PX', left)
  -- The holders outlive the mark, without which they do not count.
  redis.call('PEXPIRE', holders, left + 120000)
  return value
end
-- Removes the shares that have ended, and the share of the id `gone`. Returns the value of the lock key (`nil`: nobody
-- holds any more), its mark if shares hold, and whether there may be more capacity now. `followed`: a hand-off follows,
-- which writes the mark.
local function remove_ended(lock, holders, held, gone, followed)
  local mark = parse_mark(held)
  if not mark then return held end
  local _, weight, ended
  if gone then _, _, weight = find_share(holders, gone) end
  if weight then
    redis.call('HDEL', holders, gone)
    mark.used = mark.used - weight
    ended = true
  end
  if mark.first <= now_ms then
    mark.used, mark.first, ended = 0, nil, true
    local all = redis.call('HGETALL', holders)
    for i = 1, #all, 2 do
      local ends, _, weight = parse_share(all[i + 1])
      if not ends or ends <= now_ms then
        redis.call('HDEL', holders, all[i])
      else
        mark.used = mark.used + weight
        mark.first = math.min(mark.first or ends, ends)
      end
    end
  end
  if ended and not (followed and redis.call('HLEN', holders) > 0) then
    held = write_mark(lock, holders, mark, mark.flag)
    if not held then return end
  end
  return held, mark, ended
end
-- The ms until a hold of the lock can end by itself; negative: there is none, or it never ends.
local function ends_in(lock, mark)
  return mark and mark.first - now_ms or redis.call('PTTL', lock)
end
-- Whether one more hold fits beside the shares of `mark` (nil: nobody holds), where `limit` holds.
local function fits(weight, limit, mark)
  if weight == exclusive_weight then return not mark end
  return (weight == reader_weight) == (limit == reader_limit) and (mark and mark.used or 0) + weight <= limit
end
