-- The first character of a reply address: publish to the channel, to the sharded channel, or not at all.
local to_channel, to_shard, to_nobody = '=', '^', '!'
-- Whether the process of a waiter may still hear of a hand-off. Without a listener at a sharded channel (`^`) the process is
-- gone, unless the slot of the channel is at another node: only then the second command fails.
local function listens(mode, channel)
  if mode == to_channel then return redis.pcall('PUBSUB', 'NUMSUB', channel)[2] ~= 0 end
  if mode ~= to_shard or redis.pcall('PUBSUB', 'SHARDNUMSUB', channel)[2] ~= 0 then return true end
  return type(redis.pcall('SPUBLISH', channel, '')) == 'table'
end
-- Hands off a lock that is free, or held by shares (their `mark`): to the first live waiter, and to the waiters behind
-- it as long as they fit, all in this step; needs clock, token and shares.
-- Returns `{word, id, token, …}`, the reply of a script: after its first word the new holders of the calling process (the channel of
-- `reply_address` up to its hash tag), which need no message; or `false` when nobody got the lock.
-- `listen`: ask also whether the process of a waiter that does not fit still listens.
local function hand_off(lock, token, queue, reply_address, mark, word, listen)
  local holders = string.sub(queue, 1, -2) .. 'h'
  local own_process = string.match(reply_address, '^.([^{]*)')
  local last_token, horizon, minted_several
  local handed = false
  local head
  while true do
    head = redis.call('ZRANGEBYSCORE', queue, '0', '+inf', 'LIMIT', 0, 2)
    if not head[1] then
      redis.call('DEL', queue)
      break
    end
    local id, ttl, weight, mode, channel, process, label =
      string.match(head[1], '^([^|]*)|(%d+):?(%d*)|(.)(([^|{]*)[^|]*)|(.*)$')
    local alive = process == own_process or -(redis.call('ZSCORE', queue, '@' .. mode .. channel) or 0) * 1000 >= now
    local limit = mark and mark.limit or reader_limit
    if weight ~= exclusive_weight and weight ~= reader_weight and not mark then limit = -(redis.call('ZSCORE', queue, '#') or -weight) end
    local is_fit = fits(weight, limit, mark)
    -- Nobody listens to the channel: the process is gone, or its subscription is cut and its next check puts the waiter
    -- back. The script asks before it publishes: a message would also reach listeners at a replica.
    if alive and process ~= own_process and (is_fit or listen) then alive = listens(mode, channel) end
    -- A live waiter that does not fit holds back all behind it. One that hears no message is handed nothing by others: its
    -- own next check takes what is free, and if it dies before that, nobody waits for its ttl.
    if alive and (not is_fit or mode == to_nobody and process ~= own_process) then break end
    -- The first write: Redis allows a removal when memory is full, and then the writes after it.
    if head[2] then redis.call('ZREM', queue, head[1]) else redis.call('DEL', queue) end
    -- An entry of a share that holds, put there by a check that the network repeated late, is dropped: a second grant would replace
    -- the token of the first, whose holder would be told of a loss.
    local holds = mark and (find_share(holders, id) or 0) > now_ms
    if alive and not holds then
      minted_several = last_token
      if minted_several then
        last_token = last_token + 1
      else
        last_token, horizon = next_token(token, now_ms + queue_ms)
      end
      local new_token = string.format('%.0f', last_token)
      local is_share = weight ~= exclusive_weight
      if not is_share then
        local flag = head[2] and '+' or '-'
        redis.call('SET', lock, id .. '|' .. flag .. '|' .. new_token .. '|' .. label, 'PX', ttl)
      else
        if not mark then
          clear(holders)
          mark = { limit = limit, used = 0 }
        end
        add_share(holders, mark, id, ttl, new_token, weight, label)
      end
      if process == own_process then
        if handed then
          handed[#handed + 1] = id
          handed[#handed + 1] = last_token
        else
          handed = { word, id, last_token }
        end
      else
        handed = handed or { word }
        -- pcall: a user without the right to publish must not leave the hand-off half done.
        local text = 'granted ' .. id .. ' ' .. new_token .. ' ' .. lock
        local told = mode == to_shard and redis.pcall('SPUBLISH', channel, text)
        -- A sharded channel of another node, or no right to it: its process listens to the plain channel of that name too.
        if type(told) ~= 'number' then redis.pcall('PUBLISH', channel, text) end
      end
      if not is_share or mark.limit ~= reader_limit and mark.used >= mark.limit then
        table.remove(head, 1)
        break
      end
    end
  end
  if minted_several then redis.call('SET', token, format_token(last_token, horizon)) end
  if mark then write_mark(lock, holders, mark, head[1] and '+' or '-') end
  return handed
end
