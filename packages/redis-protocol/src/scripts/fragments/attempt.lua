-- What one acquisition finds; needs clock, token, shares and hand-over. `r` has lock, token, queue, id, label, and the
-- mode: `asked`, the limit (0: a lock), and `weight`, '' for exclusive.
-- Gives token and ms left where this id holds already.
local function look(r)
  local own = r.id .. '|'
  r.holders = string.sub(r.queue, 1, -2) .. 'h'
  -- Another type at the lock key is an error here, never overwritten.
  r.held, r.mark, r.ended = shares(r.lock, r.holders, redis.call('GET', r.lock))
  if r.held and string.sub(r.held, 1, #own) == own then
    return tonumber(string.match(r.held, '^[^|]*|[+-]|(%d+)|')), redis.call('PTTL', r.lock)
  end
  if r.mark then
    local ends, token = find_share(r.holders, r.id)
    if ends then return tonumber(token), ends - now_ms end
  end
  r.last, r.horizon = read_token(r.token)
  r.queued = (r.mark or r.horizon * 1000 > now) and redis.call('EXISTS', r.queue) == 1
end
-- Also serves those who wait and fit, where that may be: they are before it. Gives what those of the caller's own
-- process got as well.
local function look_and_serve(r, notify)
  local token, left = look(r)
  if token or not r.queued or (r.held and not r.ended) then return {}, token, left end
  local served = hand_over(r.lock, r.token, r.queue, notify, r.mark) or {}
  return served, look(r)
end
local function free_for(r)
  return not r.queued and (not r.held or r.mark and r.mark.limit == r.asked and fits(r.weight, r.asked, r.mark))
end
local function take(r, ttl)
  local last = math.max(r.last + 1, now)
  local token = string.format('%.0f', last)
  if r.weight == '' then
    local flag = r.queued and '+' or '-'
    redis.call('SET', r.lock, r.id .. '|' .. flag .. '|' .. token .. '|' .. r.label, 'PX', ttl)
  else
    if not r.mark then
      clear(r.holders)
      r.mark = { limit = r.asked, used = 0 }
    end
    add_share(r.holders, r.mark, r.id, ttl, token, r.weight, r.label)
    settle(r.lock, r.holders, r.mark, r.queued and '+' or '-')
  end
  write_token(r.token, last, r.horizon)
  return token
end
