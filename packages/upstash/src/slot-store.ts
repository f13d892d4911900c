import type { SlotStore, ResultStore } from '@locks/core/backend';
import { redisSlotsThrough, redisResultsThrough, type RedisSlotsOptions } from '@locks/redis-protocol';
import type { UpstashConnection } from './connection.ts';
import { portOf } from './upstash-port.ts';

// setup: import { createLocks } from '@locks/core'; import { day, once } from '@locks/once'; import { upstashBackend, upstashSlots, type UpstashConnection } from '@locks/upstash'; declare const database: UpstashConnection;
// setup: declare function sendInvoices(token: bigint): Promise<void>;
/**
 * The slot store in which `once` of `@locks/once` keeps the slots that were done: an entry for each name under the key `once:<name>`, in
 * the same Redis as the locks, or in another one. A failover or restart may lose the last writes of Redis: the slot then runs again.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad address or option; its functions throw errors of the store as they are, and
 * `LOCK_UNSUPPORTED` for an entry of a newer version
 * @example
 * ```ts
 * const locks = createLocks(upstashBackend(database));
 * const options = { slot: day(), atMostMs: 600_000, retry: 'next-machine', slots: upstashSlots(database) } as const;
 * await once(locks, 'invoices', ({ fencingToken }) => sendInvoices(fencingToken), options);
 * ```
 */
export function upstashSlots(database: UpstashConnection, options?: RedisSlotsOptions): SlotStore {
  const what = 'upstashSlots()';
  return redisSlotsThrough(portOf(what, database), options, what);
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
export function upstashResults(database: UpstashConnection, options?: RedisSlotsOptions): ResultStore {
  const what = 'upstashResults()';
  return redisResultsThrough(portOf(what, database), options, what);
}
