-- Gives a lock that is absent to the first live waiter, in this very step; needs clock and token.
-- Gives `{id, token}` when the new holder belongs to the caller's own process (the channel of `notify`), which then needs
-- no message;
-- `true` when somebody else got it; `false` when nobody waits.
local function hand_over(lock, token, queue, notify)
  local last, horizon = read_token(token)
  local handed = false
  local own = string.sub(notify, 2)
  while true do
    local head = redis.call('ZRANGEBYSCORE', queue, '0', '+inf', 'LIMIT', 0, 2)
    if not head[1] then
      redis.call('DEL', queue)
      break
    end
    local id, px, to, label = string.match(head[1], '^([^|]*)|(%d+)|([^|]*)|(.*)$')
    local channel = string.sub(to, 2)
    local alive = redis.call('ZSCORE', queue, '@' .. to)
    redis.call('ZREM', queue, head[1])
    if channel == own or (alive and -alive * 1000 >= now) then
      last = math.max(last + 1, now)
      local minted = string.format('%.0f', last)
      local flag = head[2] and '+' or '-'
      -- Only for the claim time: a waiter that is gone must not cost the others its whole ttl.
      redis.call('SET', lock, id .. '|' .. flag .. '|' .. minted .. '|' .. label, 'PX', px)
      handed = true
      if not head[2] then redis.call('DEL', queue) end
      if channel == own then
        handed = { id, last }
        break
      end
      local mode = string.sub(to, 1, 1)
      -- pcall: a user without the right to publish must not leave the hand-over half done.
      if mode == '!' or redis.pcall('PUBLISH', channel, 'granted ' .. id .. ' ' .. minted .. ' ' .. lock) ~= 0 or mode == '~' then
        break
      end
      -- Nobody listens there: its process is gone, or its subscription is cut and its next check puts it back.
      redis.call('DEL', lock)
      handed = false
    end
  end
  if handed then write_token(token, last, horizon) end
  return handed
end
