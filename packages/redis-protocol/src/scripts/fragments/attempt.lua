-- The steps of one attempt; needs clock, token, shares and hand-off. `r` is the request and the state of its resource:
-- lock, token, queue, id, label, and the mode as `asked`, the limit (0: a lock), and `weight`, '' for exclusive.
-- `read_state` returns the token and the ms left if this id holds already.
local function read_state(r)
  local own = r.id .. '|'
  r.holders = string.sub(r.queue, 1, -2) .. 'h'
  -- GET fails on a lock key of another type, which is never overwritten.
  r.held, r.mark, r.ended = shares(r.lock, r.holders, redis.call('GET', r.lock))
  if r.held and string.sub(r.held, 1, #own) == own then
    return tonumber(string.match(r.held, '^[^|]*|[+-]|(%d+)|')), redis.call('PTTL', r.lock)
  end
  if r.mark then
    local ends, token = find_share(r.holders, r.id)
    if ends then return tonumber(token), ends - now_ms end
  end
  r.queued = nil
end
-- Whether anybody waits: asked once, and only where it matters.
local function queued(r)
  if r.queued == nil then
    if not r.horizon then
      local _
      _, r.horizon = parse_token(redis.pcall('GET', r.token))
    end
    r.queued = (r.mark or r.horizon * 1000 > now) and redis.call('EXISTS', r.queue) == 1
  end
  return r.queued
end
-- Serves the waiters that fit, since they come before this attempt, and reads the state again. Returns the hand-offs to
-- waiters of the calling process, then what `read_state` returns.
local function serve_and_read(r, notify)
  local token, left = read_state(r)
  if token or (r.held and not r.ended) or not queued(r) then return {}, token, left end
  local served = hand_off(r.lock, r.token, r.queue, notify, r.mark) or {}
  return served, read_state(r)
end
local function free_for(r)
  return (not r.held or r.mark and r.mark.limit == r.asked and fits(r.weight, r.asked, r.mark)) and not queued(r)
end
local function take(r, ttl)
  local token = string.format('%.0f', next_token(r.token, r.horizon or 0))
  if r.weight == '' then
    local flag = queued(r) and '+' or '-'
    redis.call('SET', r.lock, r.id .. '|' .. flag .. '|' .. token .. '|' .. r.label, 'PX', ttl)
  else
    if not r.mark then
      clear(r.holders)
      r.mark = { limit = r.asked, used = 0 }
    end
    add_share(r.holders, r.mark, r.id, ttl, token, r.weight, r.label)
    write_mark(r.lock, r.holders, r.mark, queued(r) and '+' or '-')
  end
  return token
end
