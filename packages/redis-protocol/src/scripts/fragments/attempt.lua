-- The steps of one attempt; needs clock, token, shares and hand-off. `request` has the state of its resource too:
-- lock, token, queue, id, label, and the mode as `limit` (0: a lock) and `weight`.
-- `read_state` returns the token and the ms left if this id holds already.
local function read_state(request)
  local own = request.id .. '|'
  request.holders = string.sub(request.queue, 1, -2) .. 'h'
  -- GET fails on a lock key of another type, which is never overwritten.
  request.held, request.mark, request.ended = remove_ended(request.lock, request.holders, redis.call('GET', request.lock))
  if request.held and string.sub(request.held, 1, #own) == own then
    return tonumber(string.match(request.held, '^[^|]*|[+-]|(%d+)|')), redis.call('PTTL', request.lock)
  end
  if request.mark then
    local ends, token = find_share(request.holders, request.id)
    if ends then return tonumber(token), ends - now_ms end
  end
  request.queued = nil
end
-- Whether anybody waits: asked once, and only where it matters.
local function queued(request)
  if request.queued == nil then
    if not request.horizon then
      local _
      _, request.horizon = parse_token(redis.pcall('GET', request.token))
    end
    request.queued = (request.mark or request.horizon * 1000 > now) and redis.call('EXISTS', request.queue) == 1
  end
  return request.queued
end
-- Serves the waiters that fit, since they come before this attempt, and reads the state again. Returns the hand-offs to
-- waiters of the calling process, behind the word `served`, then what `read_state` returns.
local function serve_and_read(request, reply_address)
  local token, left = read_state(request)
  if token or (request.held and not request.ended) or not queued(request) then return {}, token, left end
  local served = hand_off(request.lock, request.token, request.queue, reply_address, request.mark, 'served') or {}
  return served, read_state(request)
end
local function free_for(request)
  local mark = request.mark
  local is_fit = not request.held or mark and mark.limit == request.limit and fits(request.weight, request.limit, mark)
  return is_fit and not queued(request)
end
local function take(request, ttl)
  local token = string.format('%.0f', next_token(request.token, request.horizon or 0))
  if request.weight == exclusive_weight then
    local flag = queued(request) and '+' or '-'
    redis.call('SET', request.lock, request.id .. '|' .. flag .. '|' .. token .. '|' .. request.label, 'PX', ttl)
  else
    if not request.mark then
      clear(request.holders)
      request.mark = { limit = request.limit, used = 0 }
    end
    add_share(request.holders, request.mark, request.id, ttl, token, request.weight, request.label)
    write_mark(request.lock, request.holders, request.mark, queued(request) and '+' or '-')
  end
  return token
end
