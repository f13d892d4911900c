import type { OnceRecord, ResultStore } from '@locks/core/backend';
import { redisRecordThrough, redisResultsThrough, type RedisRecordOptions } from '@locks/redis-protocol';
import type { UpstashConnection } from './connection.ts';
import { portOf } from './upstash-port.ts';

// setup: import { createLocks } from '@locks/core'; import { day, once } from '@locks/once'; import { upstashBackend, upstashRecord, type UpstashConnection } from '@locks/upstash'; declare const database: UpstashConnection;
// setup: declare function sendInvoices(token: bigint): Promise<void>;
/**
 * The record in which `once` of `@locks/once` keeps the slots that were done: an entry for each job under the key `once:<job>`, in
 * the same Redis as the locks, or in another one. A failover or restart may lose the last writes of Redis: the slot then runs again.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad address or option; its functions throw errors of the store as they are, and
 * `LOCK_UNSUPPORTED` for an entry of a newer version
 * @example
 * ```ts
 * const locks = createLocks(upstashBackend(database));
 * const options = { slot: day(), atMostMs: 600_000, retry: 'next-machine', record: upstashRecord(database) } as const;
 * await once(locks, 'invoices', options, ({ fencingToken }) => sendInvoices(fencingToken));
 * ```
 */
export function upstashRecord(database: UpstashConnection, options?: RedisRecordOptions): OnceRecord {
  const what = 'upstashRecord()';
  return redisRecordThrough(portOf(what, database), options, what);
}

// setup: import { createLocks } from '@locks/core'; import { coalesce } from '@locks/once'; import { upstashBackend, upstashResults, type UpstashConnection } from '@locks/upstash'; declare const database: UpstashConnection;
// setup: declare function fetchPrices(signal: AbortSignal): Promise<Record<string, number>>;
/**
 * The store in which `coalesce` of `@locks/once` shares results: a result ends by itself, and its fencing token is kept for an hour more.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad address or option; its functions throw errors of the store as they are
 * @example
 * ```ts
 * const locks = createLocks(upstashBackend(database));
 * const options = { store: upstashResults(database), shareForMs: 5_000 };
 * const prices = await coalesce(locks, 'prices', ({ signal }) => fetchPrices(signal), options);
 * ```
 */
export function upstashResults(database: UpstashConnection, options?: RedisRecordOptions): ResultStore {
  const what = 'upstashResults()';
  return redisResultsThrough(portOf(what, database), options, what);
}
