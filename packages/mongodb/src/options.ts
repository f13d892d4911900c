import { matching, type OptionTable, readOptions } from '@locks/core/backend';
import { prefixOption } from '@locks/record-protocol';
import type { Collection } from 'mongodb';

/** The options of `mongodbBackend`. */
export interface MongodbBackendOptions {
  /**
   * The collection of the locks, as `client.db('app').collection('locks')`: made at the first call where it is missing. Nothing else may
   * write into it. The backend never closes its client.
   */
  readonly collection: Collection;
  /**
   * What the keys of all records start with, at most 128 characters. Locks with different prefixes have nothing in common, unless one
   * prefix begins with another.
   *
   * @defaultValue `'locks/'`
   */
  readonly prefix?: string;
}

export interface CheckedMongodbOptions {
  readonly collection: Collection;
  readonly prefix: string;
}

const TABLE = {
  collection: matching(
    "a collection of the package mongodb, as client.db('app').collection('locks')",
    isCollection,
  ),
  prefix: prefixOption,
} satisfies OptionTable<MongodbBackendOptions>;

export function checkOptions(options: MongodbBackendOptions): CheckedMongodbOptions {
  return readOptions('mongodbBackend()', options, TABLE);
}

/** Recognizes a collection by what is used of it: another copy of the package may have made it. */
function isCollection(value: unknown): value is Collection {
  const { findOneAndUpdate, aggregate, watch, collectionName } = (value ?? {}) as Partial<Collection>;
  const methods = [findOneAndUpdate, aggregate, watch];
  return methods.every((method) => typeof method === 'function') && typeof collectionName === 'string';
}
