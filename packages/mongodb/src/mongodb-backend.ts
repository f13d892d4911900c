import type { LockBackend } from '@locks/core/backend';
import { createRecordBackend, type RecordCapabilities } from '@locks/record-protocol';
import { MongodbStore } from './mongodb-store.ts';
import { checkOptions, type MongodbBackendOptions } from './options.ts';

// setup: import { createLocks } from '@locks/core'; import { mongodbBackend } from '@locks/mongodb'; import { MongoClient } from 'mongodb';
/**
 * Makes a backend that keeps locks in a collection of MongoDB.
 *
 * @example
 * ```ts
 * const client = new MongoClient('mongodb://10.0.0.1:27017');
 * const locks = createLocks(mongodbBackend({ collection: client.db('app').collection('locks') }));
 * ```
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function mongodbBackend(options: MongodbBackendOptions): LockBackend<RecordCapabilities> {
  const { collection, prefix } = checkOptions(options);
  return createRecordBackend(new MongodbStore(collection), { prefix });
}
