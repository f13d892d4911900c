import { MongoClient as Mongo60 } from 'mongodb-6.0';
import { MongoClient as Mongo7 } from 'mongodb-7';
import type { Collection } from 'mongodb';
import { expect, it, onTestFinished } from 'vitest';
import { mongodbBackend } from '../src/index.ts';
import { limit, put, startedMongodb, storeOn, valueOf, versionOf } from './fixture.ts';

it.each([
  ['6.0.0', Mongo60],
  ['7', Mongo7],
] as const)('the driver %s reads, compares and swaps, deletes and lists', async (_, MongoClient) => {
  const { url } = await startedMongodb();
  const client = new MongoClient(url);
  onTestFinished(() => client.close());
  const store = storeOn(client.db('app').collection('locks') as unknown as Collection);
  const first = await versionOf(put(store, 'a', 'one'));
  expect(await put(store, 'a', 'late')).toEqual({ status: 'conflict' });
  const outcomes = await Promise.all(
    Array.from({ length: 10 }, (__, index) => put(store, 'a', `${index}`, first)),
  );
  expect(outcomes.filter(({ status }) => status === 'written')).toHaveLength(1);
  const [, version] = (await valueOf(store, 'a')) ?? [];
  for await (const record of store.list('', limit)) expect(record.version).toBe(version);
  const stop = store.watch('a', () => undefined, 'me');
  await versionOf(put(store, 'a', undefined, version));
  stop();
  expect(await valueOf(store, 'a')).toBeUndefined();
  await client.close();
  expect(store.isRetryable(await valueOf(store, 'a').catch((error: unknown) => error))).toBe(false);
});

it('a collection of a driver before 6 is refused at once, with what to install', () => {
  const client = new Mongo7('mongodb://127.0.0.1:1');
  const collection = client.db('app').collection('locks') as unknown as Collection;
  expect(() => mongodbBackend(collection)).not.toThrow();
  // What tells the older ones.
  const older = Object.assign(Object.create(collection) as Collection, { stats: () => undefined });
  expect(() => mongodbBackend(older)).toThrow(/install mongodb 6 or newer/);
});
