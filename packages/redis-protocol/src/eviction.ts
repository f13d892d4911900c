import type { RedisPort } from './port.ts';

/** Warns if the server may evict our keys when its memory is full. Never fails: `INFO` may be forbidden. */
export async function warnOfEviction(port: RedisPort): Promise<void> {
  try {
    const info = String(await (await port.masters())[0]?.(['INFO', 'memory']));
    const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1];
    const limited = /^maxmemory:[1-9]/m.test(info);
    if (!limited || policy === undefined || policy === 'noeviction') return;
    process.emitWarning(
      `Redis may evict keys of locks when its memory is full (maxmemory-policy is ${policy}): a lock could be granted ` +
        'twice. Use a server with noeviction for locks.',
      { code: 'LOCKS_REDIS_EVICTION' },
    );
  } catch {
    // INFO is forbidden or failed: nothing is known.
  }
}
