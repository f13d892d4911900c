import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from '@locks/core';
import { startProxy, waitUntil } from '@locks/test-servers';
import type { RecordChange } from '@locks/record-protocol';
import type { AbstractCursor } from 'mongodb';
import { expect, it, onTestFinished } from 'vitest';
import { mongodbBackend } from '../src/index.ts';
import { collectionOn, limit, put, startedMongodb, storeOn, valueOf, versionOf } from './fixture.ts';

const NASTY = [
  ...[
    '',
    'a',
    'A',
    'a b',
    'a.b',
    '.',
    '$a',
    '$where',
    '*',
    '/',
    '//',
    '\n',
    '\0',
    'a\0b',
    'é',
    'e\u0301',
    '🔒',
    '\u{10ffff}',
    '\uffff',
  ],
  ...['"', '\\', 'ü'.repeat(256), '%'.repeat(512)],
];

it('of twenty that write the same record, one wins, again and again', async () => {
  const { url } = await startedMongodb();
  const stores = Array.from({ length: 20 }, () => storeOn(collectionOn(url)));
  let version: string | undefined;
  for (let round = 0; round < 10; round += 1) {
    const outcomes = await Promise.all(
      stores.map((store, index) => put(store, 'a', `${round} ${index}`, version)),
    );
    const won = outcomes.filter(({ status }) => status === 'written');
    expect(won).toHaveLength(1);
    const [value, now] = (await valueOf(stores[0] as never, 'a')) ?? [];
    expect(value).toBe(`${round} ${outcomes.indexOf(won[0] as never)}`);
    version = String(now);
  }
});

it('a version never comes back, also when the record was deleted and made again', async () => {
  const store = storeOn(collectionOn((await startedMongodb()).url));
  const first = await versionOf(put(store, 'a', 'one'));
  const second = await versionOf(put(store, 'a', 'two', first));
  expect(await put(store, 'a', undefined, first)).toEqual({ status: 'conflict' });
  await versionOf(put(store, 'a', undefined, second));
  expect(await valueOf(store, 'a')).toBeUndefined();
  expect(await put(store, 'a', 'late', second)).toEqual({ status: 'conflict' });
  const third = await versionOf(put(store, 'a', 'three'));
  for (const old of [first, second, undefined]) {
    expect(await put(store, 'a', 'late', old)).toEqual({ status: 'conflict' });
  }
  expect(await valueOf(store, 'a')).toEqual(['three', third]);
});

it('keys with any characters are told apart, keep their values, and are listed by their prefixes', async () => {
  const store = storeOn(collectionOn((await startedMongodb()).url));
  for (const name of NASTY) await versionOf(put(store, `locks/lock/${name}`, name));
  for (const other of ['locks/client/1', 'locks/lock', 'locks/lock0'])
    await versionOf(put(store, other, 'other'));
  const { records } = await store.read([...NASTY.map((name) => `locks/lock/${name}`), 'absent'], limit);
  expect(records.map((record) => record && new TextDecoder().decode(record.value))).toEqual([
    ...NASTY,
    undefined,
  ]);
  const listed: string[] = [];
  for await (const { value } of store.list('locks/lock/', limit))
    listed.push(new TextDecoder().decode(value));
  expect(listed.sort()).toEqual([...NASTY].sort());
});

it("whatever the user's client sets, bytes come back as they are", async () => {
  const { url } = await startedMongodb();
  const collection = collectionOn(url, {
    promoteBuffers: false,
    promoteValues: false,
    useBigInt64: false,
    ignoreUndefined: true,
  });
  const store = storeOn(collection);
  const value = Uint8Array.from({ length: 256 }, (_, index) => index);
  await store.write({ key: 'a', value, ifVersion: undefined, isIdle: false }, limit);
  const { records, now } = await store.read(['a'], limit);
  expect([...(records[0]?.value ?? [])]).toEqual([...value]);
  expect(now).toBeTypeOf('number');
});

it("answers tell the server's time", async () => {
  const store = storeOn(collectionOn((await startedMongodb()).url));
  const before = Date.now();
  const written = await put(store, 'a', 'one');
  const { now } = await store.read(['a'], limit);
  // One machine, one clock.
  for (const time of [now, 'now' in written ? written.now : undefined]) {
    expect(time).toBeGreaterThanOrEqual(before);
    expect(time).toBeLessThanOrEqual(Date.now());
  }
});

it('idle records are marked for the index that ends them, others are not', async () => {
  const collection = collectionOn((await startedMongodb()).url);
  const store = storeOn(collection);
  const idleSince = async () =>
    (await collection.findOne({ _id: 'a' as never }))?.['idleSince'] as Date | undefined;
  const held = await versionOf(put(store, 'a', 'held'));
  expect(await idleSince()).toBeUndefined();
  const idle = await versionOf(put(store, 'a', 'idle', held, true));
  expect(await idleSince()).toBeInstanceOf(Date);
  await versionOf(put(store, 'a', 'held', idle));
  expect(await idleSince()).toBeUndefined();
  const indexes = await waitUntil(
    async () => (await collection.indexes()).filter(({ key }) => 'idleSince' in key),
    { what: 'the index' },
  );
  expect(indexes).toMatchObject([{ expireAfterSeconds: 90_000 }]);
});

it('prepare() makes the index before the first lock, also where others do', async () => {
  const collection = collectionOn((await startedMongodb()).url);
  const open = () => {
    const locks = createLocks(mongodbBackend(collection));
    onTestFinished(() => locks.close());
    return locks;
  };
  await Promise.all([open().prepare(), open().prepare()]);
  await open().prepare();
  const indexes = (await collection.indexes()).filter(({ key }) => 'idleSince' in key);
  expect(indexes).toMatchObject([{ expireAfterSeconds: 90_000 }]);
});

it('writes ask for a majority, reads for what a majority has, and for the primary', async () => {
  const collection = collectionOn((await startedMongodb()).url, {
    monitorCommands: true,
    readPreference: 'secondary',
    w: 0,
  });
  const commands: Record<string, unknown>[] = [];
  collection.db.client.on('commandStarted', ({ command }) =>
    commands.push(command as Record<string, unknown>),
  );
  const store = storeOn(collection);
  // A server that stands alone is not told the preference: the cursors tell it.
  const preferred: string[] = [];
  for (const name of ['find', 'aggregate'] as const) {
    const open = collection[name].bind(collection) as (...given: unknown[]) => AbstractCursor;
    const noted = (...given: unknown[]): AbstractCursor => {
      const cursor = open(...given);
      preferred.push(cursor.readPreference.mode);
      return cursor;
    };
    Object.assign(collection, { [name]: noted });
  }
  const version = await versionOf(put(store, 'a', 'one'));
  await store.read(['a'], limit);
  for await (const _ of store.list('', limit)) expect(_.version).toBe(version);
  await versionOf(put(store, 'a', undefined, version));
  const writes = commands.filter((command) => 'findAndModify' in command || 'delete' in command);
  expect(writes.map((command) => command['writeConcern'])).toEqual([{ w: 'majority' }, { w: 'majority' }]);
  const reads = commands.filter((command) => 'aggregate' in command || 'find' in command);
  expect(reads.map((command) => command['readConcern'])).toEqual([
    { level: 'majority' },
    { level: 'majority' },
  ]);
  expect(preferred).toEqual(['primary', 'primary']);
});

it('a paused server: a request ends when its answer is of no use any more, and later ones work', async () => {
  const server = await startedMongodb();
  const store = storeOn(collectionOn(server.url));
  const version = await versionOf(put(store, 'a', 'one'));
  await server.pause();
  const startedAt = performance.now();
  const short = { timeoutMs: 300, signal: AbortSignal.timeout(300) };
  const write = { key: 'a', value: undefined, ifVersion: version, isIdle: false };
  const outcomes = await Promise.allSettled([store.read(['a'], short), store.write(write, short)]);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(performance.now() - startedAt).toBeLessThan(2_000);
  server.resume();
  // What was sent may still take place.
  const found = await waitUntil(() => store.read(['a'], limit).catch(() => undefined), { what: 'an answer' });
  expect([undefined, version]).toContain(found.records[0]?.version);
});

it('a killed server keeps what it acknowledged', async () => {
  const server = await startedMongodb();
  const store = storeOn(collectionOn(server.url, { serverSelectionTimeoutMS: 3_000 }));
  const version = await versionOf(put(store, 'a', 'one'));
  await server.kill();
  const failed = await store.read(['a'], limit).catch((error: unknown) => error);
  expect(store.isRetryable(failed)).toBe(true);
  await server.restart();
  const found = await waitUntil(() => valueOf(store, 'a').catch(() => undefined), { what: 'an answer' });
  expect(found).toEqual(['one', version]);
  expect(await put(store, 'a', 'two', 'another version')).toEqual({ status: 'conflict' });
  await versionOf(put(store, 'a', 'two', version));
});

it('a lost connection: the next request takes another; a closed client is no reason to repeat', async () => {
  const server = await startedMongodb();
  const proxy = await startProxy(server, { protocol: 'raw' });
  onTestFinished(() => proxy.stop());
  const collection = collectionOn(`mongodb://${proxy.host}:${proxy.port}/?directConnection=true`);
  const store = storeOn(collection);
  await versionOf(put(store, 'a', 'one'));
  proxy.cut();
  const found = await waitUntil(() => valueOf(store, 'a').catch(() => undefined), { what: 'an answer' });
  expect(found?.[0]).toBe('one');
  await collection.db.client.close();
  expect(store.isRetryable(await valueOf(store, 'a').catch((error: unknown) => error))).toBe(false);
});

it('tells of writes that call this client, with the record, where the server has change streams; not on the only connection of a client', async () => {
  const { url } = await startedMongodb({ changeStreams: true });
  const collection = collectionOn(url);
  await collection.insertOne({ made: true });
  const writer = storeOn(collectionOn(url));
  const told: string[] = [];
  const alone = storeOn(collectionOn(url, { maxPoolSize: 1 }));
  alone.watch('a', () => told.push('alone'), 'me');
  const store = storeOn(collection);
  const hear = (key: string) => (change?: RecordChange) =>
    told.push(`${key} ${Buffer.from(change?.record?.value ?? []).toString()} ${change?.record?.version}`);
  const stops = ['a', 'b'].map((key) => store.watch(key, hear(key), 'me'));
  // This server tells of plain inserts alone: the fields are those of a write of the store.
  const call = async (key: string, text: string, wakes: readonly string[]): Promise<string> => {
    await collection.deleteOne({ _id: key as never });
    const write = { key, value: Buffer.from(text), ifVersion: undefined, isIdle: false, wakes };
    await writer.write(write, limit);
    const written = await collection.findOneAndDelete({ _id: key as never });
    await collection.insertOne(written as never);
    return `${key} ${text} ${written?.['version']}`;
  };
  // Until the stream has begun it tells nothing.
  while (told.length === 0) {
    await call('a', 'early', ['me']);
    await sleep(20);
  }
  // A server that tells of inserts alone tells nothing of a hand-off: polls go on as if it told nothing.
  expect(store.tellsWhom).toBe(false);
  const last = await call('a', 'last', ['me']);
  await waitUntil(() => told.includes(last), { what: 'the early writes to be told' });
  const before = told.length;
  await call('a', 'for others', ['another']);
  await call('a', 'for nobody', []);
  const calls = [
    await call('a', 'one', ['me']),
    await call('a', 'two', ['me']),
    await call('b', 'made', ['me']),
  ];
  await waitUntil(() => told.length >= before + calls.length, { what: 'the calls to be told' });
  expect(told.slice(before)).toEqual(calls);
  for (const stop of stops) stop();
  await call('b', 'late', ['me']);
  expect(told).toHaveLength(before + calls.length);
});

it('a server without change streams tells nothing, and nobody hears of it', async () => {
  const { url } = await startedMongodb();
  const collection = collectionOn(url, { monitorCommands: true });
  let refused = 0;
  collection.db.client.on('commandFailed', ({ commandName }) => {
    if (commandName === 'aggregate') refused += 1;
  });
  const store = storeOn(collection);
  let told = 0;
  for (let round = 0; round < 5; round += 1) {
    const stop = store.watch('a', () => (told += 1), 'me');
    await put(store, 'a', String(round));
    await waitUntil(() => refused > 0, { what: 'the stream to be refused' });
    stop();
  }
  expect({ told, refused }).toEqual({ told: 0, refused: 1 });
});

it('an acquire and its release are two commands; before the first one the time is asked for', async () => {
  const { url } = await startedMongodb();
  const collection = collectionOn(url, { monitorCommands: true });
  const sent: string[] = [];
  collection.db.client.on('commandStarted', ({ commandName }) => {
    if (commandName !== 'createIndexes') sent.push(commandName);
  });
  const locks = createLocks(mongodbBackend(collection));
  onTestFinished(() => locks.close());
  for (let round = 0; round < 3; round += 1) await (await locks.lock('a').acquire()).release();
  // This server does not know the first of them.
  expect(sent.splice(0, 2)).toEqual(['hello', 'isMaster']);
  expect(sent).toEqual(Array.from({ length: 6 }, () => 'findAndModify'));
});

it('the server tells its time if it is asked, and no read that finds nothing tells it', async () => {
  const { url } = await startedMongodb();
  const store = storeOn(collectionOn(url));
  const before = Date.now();
  expect(await store.read(['a'], limit)).toEqual({ records: [undefined] });
  const now = await store.askTime(limit);
  expect(now).toBeGreaterThanOrEqual(before - 1);
  expect(now).toBeLessThanOrEqual(Date.now() + 1);
});

it.each([{ value: 7 }, { value: null }, { text: 'of the application' }])(
  'a document of something else, %o, fails its own name',
  async (content) => {
    const { url } = await startedMongodb();
    const collection = collectionOn(url);
    const locks = createLocks(mongodbBackend(collection));
    onTestFinished(() => locks.close());
    const good = await locks.lock('good').acquire();
    await collection.insertOne({ _id: 'locks/lock/bad' as never, ...content });
    for (const fail of [() => locks.lock('bad').acquire(), () => locks.inspect('bad')])
      await expect(fail()).rejects.toMatchObject({
        code: 'LOCK_BACKEND',
        message: expect.stringContaining('locks/lock/bad') as string,
      });
    const listed: string[] = [];
    for await (const { name } of locks.list()) listed.push(name);
    expect(listed).toEqual(['good']);
    await good.release();
  },
);
