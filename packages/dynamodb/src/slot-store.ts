import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { SlotStore, ResultStore } from '@locks/core/backend';
import { slotsIn, resultsIn } from '@locks/record-protocol/once';
import { DynamodbStore } from './dynamodb-store.ts';
import { checkOptions, type DynamodbBackendOptions } from './options.ts';

// setup: import { DynamoDBClient } from '@aws-sdk/client-dynamodb'; import { createLocks } from '@locks/core'; import { dynamodbBackend, dynamodbSlots } from '@locks/dynamodb'; import { day, once } from '@locks/once';
// setup: declare function sendInvoices(token: bigint): Promise<void>;
/**
 * The slot store in which `once` of `@locks/once` keeps the slots that were done: an item for each name under the key `<prefix>once/<name>`, in the table of the locks or in another one.
 * It takes the arguments of {@link dynamodbBackend}.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; its functions throw errors of the client as they are, a `NoAnswerError` after
 * 10 s, and `LOCK_UNSUPPORTED` for an entry of a newer version
 * @example
 * ```ts
 * const client = new DynamoDBClient({});
 * const locks = createLocks(dynamodbBackend(client, { table: 'locks' }));
 * const options = { slot: day(), atMostMs: 600_000, retry: 'next-machine', slots: dynamodbSlots(client, { table: 'locks' }) } as const;
 * await once(locks, 'invoices', ({ fencingToken }) => sendInvoices(fencingToken), options);
 * ```
 */
export function dynamodbSlots(client: DynamoDBClient, options: DynamodbBackendOptions): SlotStore {
  const what = 'dynamodbSlots()';
  const checked = checkOptions(client, options, what);
  return slotsIn(new DynamodbStore(checked), checked.prefix, what);
}

// setup: import { DynamoDBClient } from '@aws-sdk/client-dynamodb'; import { createLocks } from '@locks/core'; import { dynamodbBackend, dynamodbResults } from '@locks/dynamodb'; import { coalesce } from '@locks/once';
// setup: declare function fetchPrices(signal: AbortSignal): Promise<Record<string, number>>;
/**
 * The store in which `coalesce` of `@locks/once` shares results, each of which ends by the time of the store. It takes the arguments of
 * {@link dynamodbBackend}.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; its functions throw errors of the client as they are, a `NoAnswerError` after
 * 10 s, and `set` `LOCK_LOST` with reason `taken-over` when a newer token wrote before
 * @example
 * ```ts
 * const client = new DynamoDBClient({});
 * const locks = createLocks(dynamodbBackend(client, { table: 'locks' }));
 * const options = { store: dynamodbResults(client, { table: 'locks' }), shareForMs: 5_000 };
 * const prices = await coalesce(locks, 'prices', ({ signal }) => fetchPrices(signal), options);
 * ```
 */
export function dynamodbResults(client: DynamoDBClient, options: DynamodbBackendOptions): ResultStore {
  const what = 'dynamodbResults()';
  const checked = checkOptions(client, options, what);
  return resultsIn(new DynamodbStore(checked), checked.prefix, what);
}
