-- Readers and permits; needs clock. While any of them holds, the lock key is the mark
-- `*<limit>|<used>|<flag>|<first>|<last>`. Limit 0: readers; used: permits taken; flag as in exclusive values; no share
-- ends before `first` or after `last` (server ms), when the mark goes by itself. Both are bounds only, `last` an eighth
-- of a ttl ahead, so that most shares come, go and are renewed without a write to the mark.
-- The holders key is a hash: `<id>` = `<from>|<ttl>|<token>|<weight>|<label>`, a share that ends at from + ttl (server
-- ms). Only while the mark stands do the holders count.
local now_ms = math.floor(now / 1000)
local function parse_mark(held)
  local limit, used, flag, first, last = string.match(held or '', '^%*(%d+)|(%d+)|([+-])|(%d+)|(%d+)$')
  return limit and { limit = limit + 0, used = used + 0, flag = flag, first = first + 0, last = last + 0 }
end
-- Gives when it ends, its token and its weight.
local function parse_share(value)
  local from, ttl, token, weight = string.match(value or '', '^(%d+)|(%d+)|(%d+)|(%d+)|')
  if from then return from + ttl, token, weight end
end
local function find_share(holders, id)
  return parse_share(redis.call('HGET', holders, id))
end
local function extend(m, ends, px)
  m.first = math.min(m.first or ends, ends)
  if ends > (m.last or 0) then m.last = ends + math.floor(px / 8) end
end
local function add_share(holders, m, id, px, token, weight, label)
  redis.call('HSET', holders, id, now_ms .. '|' .. px .. '|' .. token .. '|' .. weight .. '|' .. label)
  extend(m, now_ms + px, px)
  m.used = m.used + weight
end
-- Counts the ttl of a share anew. Gives its token, or nothing: it has ended.
local function renew_share(holders, id, px)
  local share = redis.call('HGET', holders, id)
  local ends, token = parse_share(share)
  if not ends or ends <= now_ms then return end
  -- First PEXPIRE: it passes when memory is full, and lets the writes after it pass.
  redis.call('PEXPIRE', holders, math.max(redis.call('PTTL', holders), 2 * px + 120000))
  redis.call('HSET', holders, id, now_ms .. '|' .. px .. string.match(share, '^%d+|%d+(.*)$'))
  return token
end
-- What is left of another hold counts for nothing. Errs on a key of another type, which is not ours to delete.
local function clear(holders)
  if redis.call('HLEN', holders) > 0 then redis.call('DEL', holders) end
end
-- Writes the mark as it has to be now, and gives it; `nil`: nobody holds.
local function settle(lock, holders, m, flag)
  if redis.call('HLEN', holders) == 0 then
    redis.call('DEL', lock)
    return
  end
  local left = m.last - now_ms
  local mark = '*' .. m.limit .. '|' .. m.used .. '|' .. flag .. '|' .. m.first .. '|' .. m.last
  redis.call('SET', lock, mark, 'PX', left)
  -- Longer than the mark, without which it counts for nothing.
  redis.call('PEXPIRE', holders, left + 120000)
  return mark
end
-- Takes out what has ended, and the share of the id `gone`. Gives what is held (`nil`: nothing any more), if by shares
-- the mark, and whether there may be more room now. `followed`: by a hand-over, which settles.
local function shares(lock, holders, held, gone, followed)
  local m = parse_mark(held)
  if not m then return held end
  local _, weight, ended
  if gone then _, _, weight = find_share(holders, gone) end
  if weight then
    redis.call('HDEL', holders, gone)
    m.used = m.used - weight
    ended = true
  end
  if m.first <= now_ms then
    m.used, m.first, ended = 0, nil, true
    local all = redis.call('HGETALL', holders)
    for i = 1, #all, 2 do
      local ends, _, weight = parse_share(all[i + 1])
      if not ends or ends <= now_ms then
        redis.call('HDEL', holders, all[i])
      else
        m.used = m.used + weight
        m.first = math.min(m.first or ends, ends)
      end
    end
  end
  if ended and not (followed and redis.call('HLEN', holders) > 0) then
    held = settle(lock, holders, m, m.flag)
    if not held then return end
  end
  return held, m, ended
end
-- Whether one more may hold beside what shares hold (nothing: `m` is nil), where the limit is `of`.
local function fits(weight, of, m)
  if weight == '' then return not m end
  return (weight == '0') == (of == 0) and (m and m.used or 0) + weight <= of
end
