-- Releases the lock if this very acquisition holds it, and hands it off to the next waiters in the same step.
-- KEYS  1 lock · 2 token of the slot · 3 queue · 4 holders, if it may be a share
-- ARGV  1 acquisition id · 2 reply address of the caller · 3 its weight, if it may be a share
-- Reply 'not-held' · 'released', id, token, …: these waiters of the calling process hold the lock now
local call = redis.call
local held = call('GET', KEYS[1])
if not held then return 'not-held' end
local share = ARGV[3]
if share and string.sub(held, 1, 1) == '*' then
  local limit, used, rest, first = string.match(held, '^%*(%d+)|(%d+)(|%-|(%d+)|.*)')
  local time = limit and call('TIME')
  if limit and first + 0 > time[1] * 1000 + math.floor(time[2] / 1000) then
    -- Nobody waits, and no share has ended. Readers take nothing of their limit, 0.
    if call('HDEL', KEYS[4], ARGV[1]) == 0 then return 'not-held' end
    if call('HLEN', KEYS[4]) == 0 then
      call('DEL', KEYS[1])
    elseif limit ~= '0' then
      call('SET', KEYS[1], '*' .. limit .. '|' .. used - share .. rest, 'KEEPTTL')
    end
    return 'released'
  end
else
  share = nil
  local alone = ARGV[1] .. '|-'
  local found = string.sub(held, 1, #alone)
  if found == alone then
    call('DEL', KEYS[1])
    return 'released'
  end
  if found ~= ARGV[1] .. '|+' then return 'not-held' end
end
@include clock
@include token
@include shares
@include hand-off
local mark
if share then
  local ends = parse_mark(held) and find_share(KEYS[4], ARGV[1])
  if not ends or ends <= now_ms then return 'not-held' end
  held, mark = remove_ended(KEYS[1], KEYS[4], held, ARGV[1], true)
end
local reply = hand_off(KEYS[1], KEYS[2], KEYS[3], ARGV[2], mark, 'released')
-- The hold of an exclusive lock that nobody got ends here.
if not reply and not share then call('DEL', KEYS[1]) end
return reply or 'released'
