import type { S3Client } from '@aws-sdk/client-s3';
import type { SlotStore, ResultStore } from '@locks/core/backend';
import { slotsIn, resultsIn } from '@locks/record-protocol/once';
import { S3Store } from './s3-store.ts';
import { checkOptions, type S3BackendOptions } from './options.ts';

// setup: import { S3Client } from '@aws-sdk/client-s3'; import { createLocks } from '@locks/core'; import { s3Backend, s3Slots } from '@locks/s3'; import { day, once } from '@locks/once';
// setup: declare function sendInvoices(token: bigint): Promise<void>;
/**
 * The slot store in which `once` of `@locks/once` keeps the slots that were done: an object for each name, in the bucket of the locks or in another one.
 * It takes the arguments of {@link s3Backend}.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; its functions throw errors of the client as they are, a `NoAnswerError` after
 * 10 s, and `LOCK_UNSUPPORTED` for an entry of a newer version
 * @example
 * ```ts
 * const client = new S3Client({});
 * const locks = createLocks(s3Backend(client, { bucket: 'my-locks' }));
 * const options = { slot: day(), atMostMs: 600_000, retry: 'next-machine', slots: s3Slots(client, { bucket: 'my-locks' }) } as const;
 * await once(locks, 'invoices', ({ fencingToken }) => sendInvoices(fencingToken), options);
 * ```
 */
export function s3Slots(client: S3Client, options: S3BackendOptions): SlotStore {
  const what = 's3Slots()';
  const checked = checkOptions(client, options, what);
  return slotsIn(new S3Store(checked), '', what);
}

// setup: import { S3Client } from '@aws-sdk/client-s3'; import { createLocks } from '@locks/core'; import { s3Backend, s3Results } from '@locks/s3'; import { coalesce } from '@locks/once';
// setup: declare function fetchPrices(signal: AbortSignal): Promise<Record<string, number>>;
/**
 * The store in which `coalesce` of `@locks/once` shares results, each of which ends by the time of the store. It takes the arguments of
 * {@link s3Backend}.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; its functions throw errors of the client as they are, a `NoAnswerError` after
 * 10 s, and `set` `LOCK_LOST` with reason `taken-over` when a newer token wrote before
 * @example
 * ```ts
 * const client = new S3Client({});
 * const locks = createLocks(s3Backend(client, { bucket: 'my-locks' }));
 * const options = { store: s3Results(client, { bucket: 'my-locks' }), shareForMs: 5_000 };
 * const prices = await coalesce(locks, 'prices', ({ signal }) => fetchPrices(signal), options);
 * ```
 */
export function s3Results(client: S3Client, options: S3BackendOptions): ResultStore {
  const what = 's3Results()';
  const checked = checkOptions(client, options, what);
  return resultsIn(new S3Store(checked), '', what);
}
