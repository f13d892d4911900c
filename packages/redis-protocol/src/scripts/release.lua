-- Gives the lock back if this very acquisition holds it, straight to the next waiters if there are some.
-- KEYS  1 lock · 2 token of the slot · 3 queue · 4 holders, if it may be a share
-- ARGV  1 acquisition id · 2 notify of the caller · 3 its share, if it may be one
-- Reply 0 not held · 1 released · {id, token, …} released, and these waiters of the calling process hold it now
local held = redis.call('GET', KEYS[1])
if not held then return 0 end
local share = ARGV[3]
if share and string.byte(held) == 42 then
  local limit, used, first, last, id = string.match(held, '^%*(%d+)|(%d+)|%-|(%d+)|(%d+)|(.*)$')
  local time = limit and redis.call('TIME')
  if limit and first + 0 > time[1] * 1000 + math.floor(time[2] / 1000) then
    -- Nobody waits, and none has ended.
    if redis.call('ZREM', KEYS[4], share, '$' .. ARGV[1]) == 0 then return 0 end
    if limit ~= '0' then used = used - string.match(share, '|(%d+)|') end
    if id == ARGV[1] then
      local longest
      longest, last = unpack(redis.call('ZREVRANGEBYSCORE', KEYS[4], 1e14, '-inf', 'WITHSCORES', 'LIMIT', 0, 1))
      if not longest then
        redis.call('DEL', KEYS[1])
        return 1
      end
      id = string.match(longest, '^#([^|]*)')
      redis.call('SET', KEYS[1], '*' .. limit .. '|' .. used .. '|-|' .. first .. '|' .. last .. '|' .. id)
      redis.call('PEXPIREAT', KEYS[1], last)
    elseif limit ~= '0' then
      redis.call('SET', KEYS[1], '*' .. limit .. '|' .. used .. '|-|' .. first .. '|' .. last .. '|' .. id, 'KEEPTTL')
    end
    return 1
  end
else
  share = nil
  local own = ARGV[1] .. '|'
  if string.sub(held, 1, #own) ~= own then return 0 end
  -- First write DEL: it passes when memory is full, and lets the writes after it pass.
  redis.call('DEL', KEYS[1])
  if string.byte(held, #own + 1) == 45 then return 1 end
end
@include clock
@include token
@include shares
@include hand-over
local limit, used
if share then
  local ends = redis.call('ZSCORE', KEYS[4], share)
  if not ends or ends + 0 <= now_ms then return 0 end
  held, limit, used = shares(KEYS[1], KEYS[4], held, share, true)
end
return hand_over(KEYS[1], KEYS[2], KEYS[3], ARGV[2], limit, used) or 1
