-- Takes all of several locks in one step, or none. Idempotent by id; not for clusters, where they live in many slots.
-- KEYS  for each: lock, token of the slot, queue, holders
-- ARGV  for each: acquisition id, ttl ms, label, mode as `acquire` takes it
-- Reply 0 contended, nothing was left · for each: token, ms left
@include clock
@include token
@include shares
@include hand-over
@include attempt
local all = {}
for i = 1, #KEYS, 4 do
  local asked, weight = string.match(ARGV[i + 3], '^(%d+):(%d*)$')
  local r = { lock = KEYS[i], token = KEYS[i + 1], queue = KEYS[i + 2], id = ARGV[i], label = ARGV[i + 2], asked = asked + 0, weight = weight }
  local _, holds, left = look_and_serve(r, '')
  if holds then
    r.reply = { holds, left }
  elseif not free_for(r) then
    return 0
  end
  r.ttl = ARGV[i + 1]
  all[#all + 1] = r
end
local reply = {}
for _, r in ipairs(all) do
  if not r.reply then
    r.reply = { tonumber(take(r, r.ttl)), r.ttl + 0 }
  end
  reply[#reply + 1] = r.reply[1]
  reply[#reply + 1] = r.reply[2]
end
return reply
