import type { OnceRecord, ResultStore } from '@locks/core/backend';
import { redisRecordThrough, redisResultsThrough, type RedisRecordOptions } from '@locks/redis-protocol';
import { clientPort } from './client-port.ts';
import type { ValkeyGlideClient } from './clients.ts';

// setup: import { createLocks } from '@locks/core'; import { day, once } from '@locks/once'; import { redisBackend, redisRecord } from '@locks/redis-glide'; import { GlideClient } from '@valkey/valkey-glide'; declare const client: GlideClient;
// setup: declare function sendInvoices(token: bigint): Promise<void>;
/**
 * The record in which `once` of `@locks/once` keeps the slots that were done: an entry for each job under the key `once:<job>`, in
 * the same Redis as the locks, or in another one. A failover or restart may lose the last writes of Redis: the slot then runs again.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad client or option; its functions throw errors of the client as they are, and
 * `LOCK_UNSUPPORTED` for an entry of a newer version
 * @example
 * ```ts
 * const locks = createLocks(redisBackend(client));
 * const options = { slot: day(), atMostMs: 600_000, retry: 'next-machine', record: redisRecord(client) } as const;
 * await once(locks, 'invoices', options, ({ fencingToken }) => sendInvoices(fencingToken));
 * ```
 */
export function redisRecord(client: ValkeyGlideClient, options?: RedisRecordOptions): OnceRecord {
  return redisRecordThrough(clientPort(client), options);
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
export function redisResults(client: ValkeyGlideClient, options?: RedisRecordOptions): ResultStore {
  return redisResultsThrough(clientPort(client), options);
}
