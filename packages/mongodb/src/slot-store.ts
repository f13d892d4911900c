import type { Collection } from 'mongodb';
import type { SlotStore, ResultStore } from '@locks/core/backend';
import { slotsIn, resultsIn } from '@locks/record-protocol/once';
import { MongodbStore } from './mongodb-store.ts';
import { checkOptions, type MongodbBackendOptions } from './options.ts';

// setup: import { MongoClient } from 'mongodb'; import { createLocks } from '@locks/core'; import { mongodbBackend, mongodbSlots } from '@locks/mongodb'; import { day, once } from '@locks/once';
// setup: declare function sendInvoices(token: bigint): Promise<void>;
/**
 * The slot store in which `once` of `@locks/once` keeps the slots that were done: a document for each name, in the collection of the locks or in another one.
 * It takes the arguments of {@link mongodbBackend}.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; its functions throw errors of the client as they are, a `NoAnswerError` after
 * 10 s, and `LOCK_UNSUPPORTED` for an entry of a newer version
 * @example
 * ```ts
 * const collection = new MongoClient('mongodb://10.0.0.1:27017').db('app').collection('locks');
 * const locks = createLocks(mongodbBackend(collection));
 * const options = { slot: day(), atMostMs: 600_000, retry: 'next-machine', slots: mongodbSlots(collection) } as const;
 * await once(locks, 'invoices', ({ fencingToken }) => sendInvoices(fencingToken), options);
 * ```
 */
export function mongodbSlots(collection: Collection, options?: MongodbBackendOptions): SlotStore {
  const what = 'mongodbSlots()';
  const checked = checkOptions(collection, options, what);
  return slotsIn(new MongodbStore(checked), checked.prefix, what);
}

// setup: import { MongoClient } from 'mongodb'; import { createLocks } from '@locks/core'; import { mongodbBackend, mongodbResults } from '@locks/mongodb'; import { coalesce } from '@locks/once';
// setup: declare function fetchPrices(signal: AbortSignal): Promise<Record<string, number>>;
/**
 * The store in which `coalesce` of `@locks/once` shares results, each of which ends by the time of the store. It takes the arguments of
 * {@link mongodbBackend}.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; its functions throw errors of the client as they are, a `NoAnswerError` after
 * 10 s, and `set` `LOCK_LOST` with reason `taken-over` when a newer token wrote before
 * @example
 * ```ts
 * const collection = new MongoClient('mongodb://10.0.0.1:27017').db('app').collection('locks');
 * const locks = createLocks(mongodbBackend(collection));
 * const options = { store: mongodbResults(collection), shareForMs: 5_000 };
 * const prices = await coalesce(locks, 'prices', ({ signal }) => fetchPrices(signal), options);
 * ```
 */
export function mongodbResults(collection: Collection, options?: MongodbBackendOptions): ResultStore {
  const what = 'mongodbResults()';
  const checked = checkOptions(collection, options, what);
  return resultsIn(new MongodbStore(checked), checked.prefix, what);
}
