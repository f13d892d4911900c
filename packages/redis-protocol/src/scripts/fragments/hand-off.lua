-- Whether the process of a waiter may still hear of a hand-off. Without a listener at a sharded channel (`^`) the process is
-- gone, unless the slot of the channel is at another node: only then the second command fails.
local function listens(mode, channel)
  if mode == '=' then return redis.pcall('PUBSUB', 'NUMSUB', channel)[2] ~= 0 end
  if mode ~= '^' or redis.pcall('PUBSUB', 'SHARDNUMSUB', channel)[2] ~= 0 then return true end
  return type(redis.pcall('SPUBLISH', channel, '')) == 'table'
end
-- Hands off a lock that is free, or held by shares (their mark `m`): to the first live waiter, and to the waiters behind
-- it as long as they fit, all in this step; needs clock, token and shares.
-- Returns `{id, token, …}`: the new holders of the calling process (the channel of `notify` up to its hash tag), which need no
-- message; or `false` when nobody got the lock. `listen`: ask also whether the process of a waiter that does not fit still listens.
local function hand_off(lock, token, queue, notify, m, listen)
  local holders = string.sub(queue, 1, -2) .. 'h'
  local own = string.match(notify, '^.([^{]*)')
  local last, horizon, several
  local handed = false
  local head
  while true do
    head = redis.call('ZRANGEBYSCORE', queue, '0', '+inf', 'LIMIT', 0, 2)
    if not head[1] then
      redis.call('DEL', queue)
      break
    end
    local id, px, weight, mode, channel, process, label =
      string.match(head[1], '^([^|]*)|(%d+):?(%d*)|(.)(([^|{]*)[^|]*)|(.*)$')
    local alive = process == own or -(redis.call('ZSCORE', queue, '@' .. mode .. channel) or 0) * 1000 >= now
    local of = m and m.limit or 0
    if weight ~= '' and weight ~= '0' and not m then of = -(redis.call('ZSCORE', queue, '#') or -weight) end
    local fit = fits(weight, of, m)
    -- Nobody listens to the channel: the process is gone, or its subscription is cut and its next check puts the waiter
    -- back. The script asks before it publishes: a message would also reach listeners at a replica.
    if alive and process ~= own and (fit or listen) then alive = listens(mode, channel) end
    -- A live waiter that does not fit holds back all behind it. One that hears no message is handed nothing by others: its
    -- own next check takes what is free, and if it dies before that, nobody waits for its ttl.
    if alive and (not fit or mode == '!' and process ~= own) then break end
    -- The first write: Redis allows a removal when memory is full, and then the writes after it.
    if head[2] then redis.call('ZREM', queue, head[1]) else redis.call('DEL', queue) end
    if alive then
      several = last
      if several then
        last = last + 1
      else
        last, horizon = next_token(token, now_ms + queue_ms)
      end
      local minted = string.format('%.0f', last)
      local share = weight ~= ''
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
      if process == own then
        handed[#handed + 1] = id
        handed[#handed + 1] = last
      else
        -- pcall: a user without the right to publish must not leave the hand-off half done.
        local text = 'granted ' .. id .. ' ' .. minted .. ' ' .. lock
        local told = mode == '^' and redis.pcall('SPUBLISH', channel, text)
        -- A sharded channel of another node, or no right to it: its process listens to the plain channel of that name too.
        if type(told) ~= 'number' then redis.pcall('PUBLISH', channel, text) end
      end
      if not share or m.limit > 0 and m.used >= m.limit then
        table.remove(head, 1)
        break
      end
    end
  end
  if several then redis.call('SET', token, format_token(last, horizon)) end
  if m then write_mark(lock, holders, m, head[1] and '+' or '-') end
  return handed
end
