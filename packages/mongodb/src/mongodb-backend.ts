import type { Collection } from 'mongodb';
import type { LockBackend } from '@locks/core/backend';
import { createRecordBackend, type RecordCapabilities } from '@locks/record-protocol';
import { MongodbStore } from './mongodb-store.ts';
import { checkOptions, type MongodbBackendOptions } from './options.ts';

// setup: import { createLocks } from '@locks/core'; import { mongodbBackend } from '@locks/mongodb'; import { MongoClient } from 'mongodb';
/**
 * Makes a backend that keeps locks in a collection of MongoDB.
 *
 * @param collection - the collection of the locks, as `client.db('app').collection('locks')`: made at the first call where it is missing. Nothing else may write into it, and its client is never closed
 * @example
 * ```ts
 * const client = new MongoClient('mongodb://10.0.0.1:27017');
 * const locks = createLocks(mongodbBackend(client.db('app').collection('locks')));
 * ```
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function mongodbBackend(
  collection: Collection,
  options?: MongodbBackendOptions,
): LockBackend<RecordCapabilities> {
  const checked = checkOptions(collection, options);
  return createRecordBackend(new MongodbStore(checked), { prefix: checked.prefix });
}
