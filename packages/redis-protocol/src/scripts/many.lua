-- Takes all of several locks in one step, or none. Idempotent by id. Not for clusters, where the locks are in many slots.
-- KEYS  for each: lock, token of the slot, queue, holders
-- ARGV  for each: acquisition id, ttl ms, label, limit, weight, the last two as `acquire` takes them
-- Reply 'contended': the attempt left nothing behind · 'granted', then for each: token, ms left
@include clock
@include token
@include shares
@include hand-off
@include attempt
local all = {}
for i = 1, #KEYS, 4 do
  local id, ttl, label, limit, weight = unpack(ARGV, #all * 5 + 1, #all * 5 + 5)
  local request = {
    lock = KEYS[i], token = KEYS[i + 1], queue = KEYS[i + 2],
    id = id, label = label, limit = limit + 0, weight = weight, ttl = ttl,
  }
  local _, own_token, left = serve_and_read(request, '')
  if own_token then
    request.reply = { own_token, left }
  elseif not free_for(request) then
    return 'contended'
  end
  all[#all + 1] = request
end
local reply = { 'granted' }
for _, request in ipairs(all) do
  if not request.reply then
    request.reply = { tonumber(take(request, request.ttl)), request.ttl + 0 }
  end
  reply[#reply + 1] = request.reply[1]
  reply[#reply + 1] = request.reply[2]
end
return reply
