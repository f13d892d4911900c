import { type FencedSetOptions, fencedSetThrough } from '@locks/redis-protocol';
import type { UpstashConnection } from './connection.ts';
import { portOf } from './upstash-port.ts';

// setup: import { createLocks } from '@locks/core'; import { fencedSet, upstashBackend, type UpstashConnection } from '@locks/upstash';
// setup: declare const database: UpstashConnection; const locks = createLocks(upstashBackend(database)); declare function render(): Promise<string>;
/**
 * Writes a value with the token of the lease that protects it, in one step: a holder that lost its lease and writes late
 * is refused once a newer holder has written. The value itself stays plain: the newest token is kept under a key of its own.
 *
 * @param token - the `fencingToken` of the lease; the same one may write many times
 * @throws `LOCK_LOST` with reason `taken-over` when a newer token wrote before: nothing was written.
 * `LOCK_INVALID_ARGUMENT` for a bad address, key, value, token or option; errors of the store as they are
 *
 * @example
 * ```ts
 * await locks.lock('report').run(async (lease) => {
 *   await fencedSet(database, 'report:latest', await render(), lease.fencingToken);
 * });
 * ```
 */
export async function fencedSet(
  database: UpstashConnection,
  key: string,
  value: string,
  token: bigint,
  options?: FencedSetOptions,
): Promise<void> {
  return fencedSetThrough(portOf('fencedSet()', database), key, value, token, options);
}
