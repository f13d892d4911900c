-- Gives a lock that is absent, or held by shares (their mark `m`), to the first live waiter and to its neighbours as
-- long as they fit, in this very step; needs clock, token and shares.
-- Gives `{id, token, …}`: those new holders that belong to the caller's own process (the channel of `notify`) and need
-- no message; `false` when nobody got it. `listen`: makes sure that one who holds the others back is there.
local function hand_over(lock, token, queue, notify, m, listen)
  local holders = string.sub(queue, 1, -2) .. 'h'
  local own = string.sub(notify, 2)
  local last, horizon
  local handed = false
  local head
  while true do
    head = redis.call('ZRANGEBYSCORE', queue, '0', '+inf', 'LIMIT', 0, 2)
    if not head[1] then
      redis.call('DEL', queue)
      break
    end
    local id, px, weight, to, label = string.match(head[1], '^([^|]*)|(%d+):?(%d*)|([^|]*)|(.*)$')
    local mode, channel = string.sub(to, 1, 1), string.sub(to, 2)
    local alive = channel == own or -(redis.call('ZSCORE', queue, '@' .. to) or 0) * 1000 >= now
    local of = m and m.limit or 0
    if weight ~= '' and weight ~= '0' and not m then of = -(redis.call('ZSCORE', queue, '#') or -weight) end
    local fit = fits(weight, of, m)
    -- Nobody listens there: its process is gone, or its subscription is cut and its next check puts it back. Asked
    -- before anything is published, which also those would hear who listen at a replica.
    if alive and channel ~= own and mode == '=' and (fit or listen) then
      alive = redis.pcall('PUBSUB', 'NUMSUB', channel)[2] ~= 0
    end
    -- It holds back all behind it.
    if alive and not fit then break end
    if head[2] then redis.call('ZREM', queue, head[1]) else redis.call('DEL', queue) end
    if alive then
      if not last then last, horizon = read_token(token) end
      last = math.max(last + 1, now)
      local minted = string.format('%.0f', last)
      local share = weight ~= ''
      -- Only for the claim time: a waiter that is gone must not cost the others its whole ttl.
      if not share then
        local flag = head[2] and '+' or '-'
        redis.call('SET', lock, id .. '|' .. flag .. '|' .. minted .. '|' .. label, 'PX', px)
      else
        if not m then
          clear(holders)
          m = { limit = of, used = 0 }
        end
        add_share(holders, m, id, px, minted, weight, label)
      end
      handed = handed or {}
      if channel == own then
        handed[#handed + 1] = id
        handed[#handed + 1] = last
      elseif mode ~= '!' then
        -- pcall: a user without the right to publish must not leave the hand-over half done.
        redis.pcall('PUBLISH', channel, 'granted ' .. id .. ' ' .. minted .. ' ' .. lock)
      end
      if not share or m.limit > 0 and m.used >= m.limit then
        table.remove(head, 1)
        break
      end
    end
  end
  if last then write_token(token, last, horizon) end
  if m then settle(lock, holders, m, head[1] and '+' or '-') end
  return handed
end
