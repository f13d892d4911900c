import type { NatsConnection } from '@nats-io/nats-core';
import type { SlotStore, ResultStore } from '@locks/core/backend';
import { slotsIn, resultsIn } from '@locks/record-protocol/once';
import { NatsStore } from './nats-store.ts';
import { checkOptions, type NatsBackendOptions } from './options.ts';

// setup: import { connect } from '@nats-io/transport-node'; import { createLocks } from '@locks/core'; import { natsBackend, natsSlots } from '@locks/nats'; import { day, once } from '@locks/once';
// setup: declare function sendInvoices(token: bigint): Promise<void>;
/**
 * The slot store in which `once` of `@locks/once` keeps the slots that were done: a key for each name, in the bucket of the locks or in another one.
 * It takes the arguments of {@link natsBackend}.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; its functions throw errors of the client as they are, a `NoAnswerError` after
 * 10 s, and `LOCK_UNSUPPORTED` for an entry of a newer version
 * @example
 * ```ts
 * const connection = await connect({ maxReconnectAttempts: -1 });
 * const locks = createLocks(natsBackend(connection));
 * const options = { slot: day(), atMostMs: 600_000, retry: 'next-machine', slots: natsSlots(connection) } as const;
 * await once(locks, 'invoices', ({ fencingToken }) => sendInvoices(fencingToken), options);
 * ```
 */
export function natsSlots(connection: NatsConnection, options?: NatsBackendOptions): SlotStore {
  const what = 'natsSlots()';
  const checked = checkOptions(connection, options, what);
  return slotsIn(new NatsStore(checked), checked.prefix, what);
}

// setup: import { connect } from '@nats-io/transport-node'; import { createLocks } from '@locks/core'; import { natsBackend, natsResults } from '@locks/nats'; import { coalesce } from '@locks/once';
// setup: declare function fetchPrices(signal: AbortSignal): Promise<Record<string, number>>;
/**
 * The store in which `coalesce` of `@locks/once` shares results, each of which ends by the time of the store. It takes the arguments of
 * {@link natsBackend}.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; its functions throw errors of the client as they are, a `NoAnswerError` after
 * 10 s, and `set` `LOCK_LOST` with reason `taken-over` when a newer token wrote before
 * @example
 * ```ts
 * const connection = await connect({ maxReconnectAttempts: -1 });
 * const locks = createLocks(natsBackend(connection));
 * const options = { store: natsResults(connection), shareForMs: 5_000 };
 * const prices = await coalesce(locks, 'prices', ({ signal }) => fetchPrices(signal), options);
 * ```
 */
export function natsResults(connection: NatsConnection, options?: NatsBackendOptions): ResultStore {
  const what = 'natsResults()';
  const checked = checkOptions(connection, options, what);
  return resultsIn(new NatsStore(checked), checked.prefix, what);
}
