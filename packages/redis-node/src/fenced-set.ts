import { type FencedSetOptions, fencedSetThrough } from '@locks/redis-protocol';
import type { NodeRedisClient } from './clients.ts';
import { portOf } from './node-redis-port.ts';

// setup: import { createLocks } from '@locks/core'; import { fencedSet, redisBackend } from '@locks/redis-node'; import { createClient } from 'redis';
// setup: const client = createClient(); const locks = createLocks(redisBackend(client)); declare function render(): Promise<string>;
/**
 * Writes a value with the token of the lease that protects it, in one step: a holder that lost its lease and writes late
 * is refused once a newer holder has written. The value itself stays plain: the newest token is kept under a key of its
 * own, in the same slot.
 *
 * @param token - the `fencingToken` of the lease; the same one may write many times
 * @throws `LOCK_LOST` with reason `taken-over` when a newer token wrote before: nothing was written.
 * `LOCK_INVALID_ARGUMENT` for a bad client, key, value, token or option; errors of the client as they are
 *
 * @example
 * ```ts
 * await locks.lock('report').run(async (lease) => {
 *   await fencedSet(client, 'report:latest', await render(), lease.fencingToken);
 * });
 * ```
 */
export async function fencedSet(
  client: NodeRedisClient,
  key: string,
  value: string,
  token: bigint,
  options?: FencedSetOptions,
): Promise<void> {
  return fencedSetThrough(portOf(client), key, value, token, options);
}
