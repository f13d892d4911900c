-- Readers and permits; needs clock. While any of them holds, the lock key is
-- `*<limit>|<used>|<flag>|<first>|<last>|<id>` until the last of them ends; limit 0: readers; flag as in exclusive values;
-- none ends before `first` (server ms), and `id` is one that ends last, at `last`. The holders key is a sorted set of `#<id>|<weight>|<label>` = server ms of its end, and `$<id>` = its
-- token. Only while that mark stands do the holders count.
local now_ms = math.floor(now / 1000)
local function share_of(id, weight, label)
  return '#' .. id .. '|' .. (tonumber(weight) or 0) .. '|' .. label
end
local function find_share(holders, id)
  for _, share in ipairs(redis.call('ZRANGEBYSCORE', holders, '-inf', 1e14)) do
    if string.sub(share, 2, #id + 2) == id .. '|' then return share end
  end
end
local function add_share(holders, share, id, px, token)
  redis.call('ZADD', holders, now_ms + px, share, token, '$' .. id)
end
-- What is left of another hold counts for nothing. Errs on a key of another type, which is not ours to delete.
local function clear(holders)
  if redis.call('ZCARD', holders) > 0 then redis.call('DEL', holders) end
end
-- Writes and gives the mark as it has to be now: it stands as long as the longest of them. `nil`: nobody holds any more.
local function settle(lock, holders, limit, used, flag)
  local first = redis.call('ZRANGEBYSCORE', holders, '-inf', 1e14, 'WITHSCORES', 'LIMIT', 0, 1)[2]
  if not first then
    redis.call('DEL', lock, holders)
    return nil
  end
  local share, last = unpack(redis.call('ZREVRANGEBYSCORE', holders, 1e14, '-inf', 'WITHSCORES', 'LIMIT', 0, 1))
  local id = string.match(share, '^#([^|]*)')
  local mark = '*' .. limit .. '|' .. used .. '|' .. flag .. '|' .. first .. '|' .. last .. '|' .. id
  redis.call('SET', lock, mark, 'PX', last - now_ms)
  -- Longer than the mark, without which it counts for nothing: so it need not be moved with each share.
  redis.call('PEXPIRE', holders, last - now_ms + 120000)
  return mark
end
-- Takes out what has ended, and `gone`. Gives what is held (`nil`: nothing any more) and, if by shares, limit, use, and
-- whether anything was taken out. `followed`: by a hand-over, which settles.
local function shares(lock, holders, held, gone, followed)
  local limit, used, flag = string.match(held or '', '^%*(%d+)|(%d+)|([+-])|%d+|%d+|')
  if not limit then return held end
  local ended = redis.call('ZRANGEBYSCORE', holders, '-inf', now_ms)
  ended[#ended + 1] = gone or nil
  for _, share in ipairs(ended) do
    local id, weight = string.match(share, '^#([^|]*)|(%d+)|')
    used = used - redis.call('ZREM', holders, share, '$' .. id) / 2 * weight
  end
  if ended[1] then
    if not followed then
      held = settle(lock, holders, limit, used, flag)
    elseif redis.call('ZCARD', holders) == 0 then
      held = nil
      redis.call('DEL', lock)
    end
  end
  if held then return held, limit + 0, used + 0, ended[1] end
end
-- Whether one more may hold beside what shares hold (nothing: `limit` is nil), where the limit is `of`.
local function fits(weight, of, limit, used)
  if weight == '' then return not limit end
  return (weight == '0') == (of == 0) and (used or 0) + weight <= of
end
