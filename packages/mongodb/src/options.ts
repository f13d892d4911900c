import { invalidArgument, type OptionTable, readClient, readOptions } from '@locks/core/backend';
import { expiryOption, prefixOption, skewOption } from '@locks/record-protocol';
import type { Collection } from 'mongodb';

/** The options of `mongodbBackend`. */
export interface MongodbBackendOptions {
  /**
   * What the keys of all records start with, at most 128 characters without `lock/`, which stands between them and the name. Locks with different
   * prefixes have nothing in common.
   *
   * @defaultValue `'locks/'`
   */
  readonly prefix?: string;
  /**
   * `'clock'`: the lock of a dead holder is free by the time that the servers tell, for a process too that has just started.
   * `'observed'`: only for a process that has seen it unchanged for its ttl; one that lives or waits for less never gets it. The same in
   * all processes.
   *
   * @defaultValue `'clock'`
   */
  readonly expiry?: 'clock' | 'observed';
  /**
   * How far apart the clocks of the servers may be, in milliseconds, 0 to 60000. The locks of dead holders are free that much later.
   *
   * @defaultValue 5000
   */
  readonly skewMs?: number;
}

export interface CheckedMongodbOptions {
  readonly collection: Collection;
  readonly prefix: string;
  readonly expiry: 'clock' | 'observed';
  readonly skewMs: number;
}

const TABLE = {
  prefix: prefixOption,
  expiry: expiryOption,
  skewMs: skewOption(5_000),
} satisfies OptionTable<MongodbBackendOptions>;

const ELSEWHERE = { collection: 'the first argument' };

export function checkOptions(
  given: unknown,
  options: MongodbBackendOptions | undefined,
  what = 'mongodbBackend()',
): CheckedMongodbOptions {
  const allowed = "a collection of the package mongodb, as client.db('app').collection('locks')";
  const collection = readClient(what, 'collection', given, allowed, isCollection);
  const read = readOptions(what, options, TABLE, ELSEWHERE);
  // Up to version 5 collections had this method, and their updates another answer.
  if ('stats' in collection)
    throw invalidArgument(`${what}: the collection is of an older driver: install mongodb 6 or newer.`);
  return { collection, ...read };
}

/** Recognizes a collection by what is used of it: another copy of the package may have made it. */
function isCollection(value: unknown): value is Collection {
  const { findOneAndUpdate, aggregate, watch, collectionName } = (value ?? {}) as Partial<Collection>;
  const methods = [findOneAndUpdate, aggregate, watch];
  return methods.every((method) => typeof method === 'function') && typeof collectionName === 'string';
}
