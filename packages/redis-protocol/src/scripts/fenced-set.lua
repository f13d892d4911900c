-- Writes a value unless a newer token wrote before. Tokens are compared as decimal numbers of any length.
-- KEYS  1 the user's key · 2 its fence: the newest token that wrote
-- ARGV  1 token · 2 value · 3 ttl ms, `keep`, or empty · 4 ttl ms of the fence, or empty
-- Reply 'written' · 'refused', the newer token
local token, ttl, fence_ttl = ARGV[1], ARGV[3], ARGV[4]
local newest = redis.call('GET', KEYS[2])
if newest and (#newest > #token or (#newest == #token and newest > token)) then return { 'refused', newest } end
-- The fence is written first: if the write of the value is refused, older tokens are refused too.
if fence_ttl ~= '' then
  redis.call('SET', KEYS[2], token, 'PX', fence_ttl)
elseif newest ~= token or redis.call('PTTL', KEYS[2]) >= 0 then
  redis.call('SET', KEYS[2], token)
end
if ttl == 'keep' then
  redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
elseif ttl ~= '' then
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ttl)
else
  redis.call('SET', KEYS[1], ARGV[2])
end
return 'written'
