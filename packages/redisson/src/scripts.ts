import { createHash } from 'node:crypto';
import { renewalReplies, type Script } from '@locks/redis-protocol/kit';

function script(source: string): Script {
  return { sha1: createHash('sha1').update(source).digest('hex'), source };
}

/**
 * Takes a free lock. A repetition finds its own hold, and leaves it as it is: Redisson's script would count it twice. The time that is
 * left of it is rounded down: the server counts whole milliseconds.
 *
 * KEYS: lock, and its counter of tokens for a fenced lock. ARGV: field, ttl in milliseconds.
 * Reply: `granted`, the milliseconds left, the token or 0, as a string where Lua or a client may not tell it from the next; or `contended`, and the
 * milliseconds left of the present hold.
 */
export const acquire: Script = /* @__PURE__ */ script(`local lock,field=KEYS[1],ARGV[1]
if redis.call('exists',lock)==0 then
local token=0
if KEYS[2] then
token=redis.call('incr',KEYS[2])
if token>4503599627370496 then token=redis.call('get',KEYS[2]) end
redis.call('hset',lock,'token',token)
end
redis.call('hset',lock,field,1)
redis.call('pexpire',lock,ARGV[2])
return {'granted',tonumber(ARGV[2]),token}
end
local left=redis.call('pttl',lock)
if redis.call('hexists',lock,field)==0 then return {'contended',left} end
return {'granted',left-1,redis.call('hget',lock,'token') or 0}
`);

/**
 * Ends the hold of a field, and wakes one waiter of each process, as Redisson's \`unlock\` does.
 *
 * KEYS: lock, and the latch of this release. ARGV: field, channel, \`PUBLISH\` or \`SPUBLISH\`, milliseconds of the latch.
 * Reply: `released`, now or by an earlier sending of the same command; `not-held`.
 */
export const release: Script = /* @__PURE__ */ script(`local lock,latch=KEYS[1],KEYS[2]
if redis.call('hexists',lock,ARGV[1])==0 then return latch and redis.call('exists',latch)==1 and 'released' or 'not-held' end
redis.call('del',lock)
redis.call(ARGV[3],ARGV[2],0)
if latch then redis.call('set',latch,1,'px',ARGV[4]) end
return 'released'
`);

/**
 * Moves the ends of holds. What is not there, or held by another field or under another token, stays as it is.
 *
 * KEYS: locks. ARGV: field, ttl in milliseconds, token or an empty string, for each lock.
 * Reply: a number of `renewalReplies` for each lock; another holds also a key that is no lock.
 */
export const renew: Script = /* @__PURE__ */ script(`local result={}
for i,lock in ipairs(KEYS) do
local field,ttl,token=ARGV[3*i-2],ARGV[3*i-1],ARGV[3*i]
local own=redis.pcall('hexists',lock,field)
if own==1 and (token=='' or redis.call('hget',lock,'token')==token) then
redis.call('pexpire',lock,ttl)
result[i]=${renewalReplies.renewed}
elseif own==0 and redis.call('exists',lock)==0 then
result[i]=${renewalReplies.nobodyHolds}
else
result[i]=${renewalReplies.anotherHolds}
end
end
return result
`);

/**
 * KEYS: lock, and its counter of tokens for a fenced lock.
 * Reply: the milliseconds left, the token or an empty string, then field and count in turn.
 */
export const inspect: Script = /* @__PURE__ */ script(`local fields=redis.call('hgetall',KEYS[1])
local token=redis.call('hget',KEYS[1],'token') or (KEYS[2] and redis.call('get',KEYS[2])) or ''
return {redis.call('pttl',KEYS[1]),token,unpack(fields)}
`);

/**
 * Ends the hold of whoever holds, as Redisson's \`forceUnlock\` does.
 *
 * KEYS: as above. ARGV: channel, \`PUBLISH\` or \`SPUBLISH\`, and the beginning of the only field to end.
 * Reply: as above, of what was ended; or nothing.
 */
export const forceRelease: Script = /* @__PURE__ */ script(`local fields=redis.call('hgetall',KEYS[1])
if redis.call('hexists',KEYS[1],'mode')==1 then
return redis.error_reply('MODE the key is a lock of getReadWriteLock: end its holds there')
end
local found=#fields>0 and not ARGV[3]
for i=1,#fields,2 do
if ARGV[3] and string.sub(fields[i],1,#ARGV[3])==ARGV[3] then found=true end
end
if not found then return {} end
local token=redis.call('hget',KEYS[1],'token') or (KEYS[2] and redis.call('get',KEYS[2])) or ''
local left=redis.call('pttl',KEYS[1])
redis.call('del',KEYS[1])
redis.call(ARGV[2],ARGV[1],0)
return {left,token,unpack(fields)}
`);
