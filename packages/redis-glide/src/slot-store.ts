import type { SlotStore, ResultStore } from '@locks/core/backend';
import { redisSlotsThrough, redisResultsThrough, type RedisSlotsOptions } from '@locks/redis-protocol';
import { clientPort } from './glide-port.ts';
import type { ValkeyGlideClient } from './clients.ts';

// setup: import { createLocks } from '@locks/core'; import { day, once } from '@locks/once'; import { redisBackend, redisSlots } from '@locks/redis-glide'; import { GlideClient } from '@valkey/valkey-glide'; declare const client: GlideClient;
// setup: declare function sendInvoices(token: bigint): Promise<void>;
/**
 * The slot store in which `once` of `@locks/once` keeps the slots that were done: an entry for each name under the key `once:<name>`, in
 * the same Redis as the locks, or in another one. A failover or restart may lose the last writes of Redis: the slot then runs again.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad client or option; its functions throw errors of the client as they are, and
 * `LOCK_UNSUPPORTED` for an entry of a newer version
 * @example
 * ```ts
 * const locks = createLocks(redisBackend(client));
 * const options = { slot: day(), atMostMs: 600_000, retry: 'next-machine', slots: redisSlots(client) } as const;
 * await once(locks, 'invoices', ({ fencingToken }) => sendInvoices(fencingToken), options);
 * ```
 */
export function redisSlots(client: ValkeyGlideClient, options?: RedisSlotsOptions): SlotStore {
  return redisSlotsThrough(clientPort(client), options);
}

// setup: import { createLocks } from '@locks/core'; import { coalesce } from '@locks/once'; import { redisBackend, redisResults } from '@locks/redis-glide'; import { GlideClient } from '@valkey/valkey-glide'; declare const client: GlideClient;
// setup: declare function fetchPrices(signal: AbortSignal): Promise<Record<string, number>>;
/**
 * The store in which `coalesce` of `@locks/once` shares results: a result ends by itself, and its fencing token is kept for an hour more.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad client or option; its functions throw errors of the client as they are
 * @example
 * ```ts
 * const locks = createLocks(redisBackend(client));
 * const options = { store: redisResults(client), shareForMs: 5_000 };
 * const prices = await coalesce(locks, 'prices', ({ signal }) => fetchPrices(signal), options);
 * ```
 */
export function redisResults(client: ValkeyGlideClient, options?: RedisSlotsOptions): ResultStore {
  return redisResultsThrough(clientPort(client), options);
}
