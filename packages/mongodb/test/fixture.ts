import type { RequestLimit } from '@locks/record-protocol';
import { type MongodbOptions, type MongodbServer, startMongodb } from '@locks/test-servers';
import { type Collection, MongoClient, type MongoClientOptions } from 'mongodb';
import { onTestFinished } from 'vitest';
import { MongodbStore } from '../src/mongodb-store.ts';

export const limit: RequestLimit = { timeoutMs: 5_000, signal: new AbortController().signal };

export async function startedMongodb(options?: MongodbOptions): Promise<MongodbServer> {
  const server = await startMongodb(options);
  onTestFinished(() => server.stop());
  return server;
}

export function collectionOn(url: string, options: MongoClientOptions = {}): Collection {
  const client = new MongoClient(url, { serverSelectionTimeoutMS: 10_000, ...options });
  onTestFinished(() => client.close());
  return client.db('app').collection('locks');
}

export function storeOn(collection: Collection): MongodbStore {
  const store = new MongodbStore({ collection, expiry: 'clock', skewMs: 5_000 });
  onTestFinished(() => store.close());
  return store;
}

/** The text and version of a record. */
export async function valueOf(
  store: MongodbStore,
  key: string,
): Promise<readonly [string, unknown] | undefined> {
  const [record] = (await store.read([key], limit)).records;
  return record && [new TextDecoder().decode(record.value), record.version];
}

export async function put(
  store: MongodbStore,
  key: string,
  text: string | undefined,
  ifVersion?: unknown,
  isIdle = false,
) {
  const value = text === undefined ? undefined : new TextEncoder().encode(text);
  return await store.write({ key, value, ifVersion: ifVersion as string | undefined, isIdle }, limit);
}

/** The version that a write gave. */
export async function versionOf(written: ReturnType<typeof put>): Promise<string> {
  const outcome = await written;
  if (outcome.status !== 'written') throw new Error(outcome.status);
  return String(outcome.version);
}
