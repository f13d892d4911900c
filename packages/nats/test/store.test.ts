import { type AddressInfo, createConnection, createServer } from 'node:net';
import { createLocks } from '@locks/core';
import { waitUntil } from '@locks/test-servers';
import { headers, type NatsConnection } from '@nats-io/transport-node';
import { connect as connectWith30 } from 'transport-node-3.0';
import { expect, it, onTestFinished } from 'vitest';
import { natsBackend } from '../src/index.ts';
import { connectionTo, limit, put, startedNats, storeOn, valueOf, versionOf } from './fixture.ts';

const NASTY = [
  ...[
    'a',
    'A',
    'a b',
    'a.b',
    '.',
    '..',
    '.a',
    'a.',
    'a..b',
    '*',
    '>',
    'a.>',
    '/',
    '//',
    '/a/',
    '\n',
    '\0',
    '\t',
    '=',
    '=2e',
  ],
  ...[
    'é',
    'e\u0301',
    '🔒',
    '$KV.locks.x',
    'a\r\nPUB x 0\r\n',
    '"',
    '\\',
    '\u202e',
    'ü'.repeat(256),
    '%'.repeat(512),
    '%2e',
  ],
];

it('of twenty that write the same record, one wins, again and again', async () => {
  const server = await startedNats();
  const stores = await Promise.all(
    Array.from({ length: 20 }, async () => storeOn(await connectionTo(server.url))),
  );
  let version: number | undefined;
  for (let round = 0; round < 10; round += 1) {
    const outcomes = await Promise.all(
      stores.map((store, index) => put(store, 'a', `${round} ${index}`, version)),
    );
    const won = outcomes.filter(({ status }) => status === 'written');
    expect(won).toHaveLength(1);
    const [value, now] = (await valueOf(stores[0] as never, 'a')) ?? [];
    expect(value).toBe(`${round} ${outcomes.indexOf(won[0] as never)}`);
    version = Number(now);
  }
});

it('a version never comes back, also when the record was deleted and made again', async () => {
  const store = storeOn(await connectionTo((await startedNats()).url));
  const first = await versionOf(put(store, 'a', 'one'));
  const second = await versionOf(put(store, 'a', 'two', first));
  await versionOf(put(store, 'a', undefined, second));
  expect(await valueOf(store, 'a')).toBeUndefined();
  expect(await put(store, 'a', 'late', second)).toEqual({ status: 'conflict' });
  const third = await versionOf(put(store, 'a', 'three'));
  expect(third).toBeGreaterThan(second);
  for (const old of [first, second])
    expect(await put(store, 'a', 'late', old)).toEqual({ status: 'conflict' });
  const conflict = await put(store, 'a', 'late');
  expect(conflict).toMatchObject({ status: 'conflict', present: { version: third } });
  expect(await valueOf(store, 'a')).toEqual(['three', third]);
});

it('keys with any characters are told apart, keep their values, and are listed by their prefixes', async () => {
  const store = storeOn(await connectionTo((await startedNats()).url));
  for (const name of NASTY) await versionOf(put(store, `locks/lock/${name}`, name));
  await versionOf(put(store, 'locks/client/1', 'heartbeat'));
  const deleted = await versionOf(put(store, 'locks/lock/gone', 'gone'));
  await versionOf(put(store, 'locks/lock/gone', undefined, deleted));
  const { records } = await store.read(
    NASTY.map((name) => `locks/lock/${name}`),
    limit,
  );
  expect(records.map((record) => new TextDecoder().decode(record?.value))).toEqual(NASTY);
  const listed: string[] = [];
  for await (const { value } of store.list('locks/lock/', limit))
    listed.push(new TextDecoder().decode(value));
  expect(listed.sort()).toEqual([...NASTY].sort());
});

it('a large value comes back, and the limit is that of the server', async () => {
  const store = storeOn(await connectionTo((await startedNats()).url));
  expect(store.maxValueBytes).toBe(1_048_576 - 1_024);
  const large = 'x'.repeat(store.maxValueBytes);
  await versionOf(put(store, 'a', large));
  expect((await valueOf(store, 'a'))?.[0]).toBe(large);
});

it('idle records and deleted ones are kept for a day, others for ever', async () => {
  const connection = await connectionTo((await startedNats()).url);
  const store = storeOn(connection);
  const ttlOf = async (): Promise<string | undefined> => {
    const answer = await connection.request(
      '$JS.API.STREAM.MSG.GET.KV_locks',
      '{"last_by_subj":"$KV.locks.a"}',
    );
    const { message } = answer.json<{ message: { hdrs: string } }>();
    return /Nats-TTL: (\w+)/.exec(Buffer.from(message.hdrs, 'base64').toString())?.[1];
  };
  const held = await versionOf(put(store, 'a', 'held'));
  expect(await ttlOf()).toBeUndefined();
  const idle = await versionOf(put(store, 'a', 'idle', held, true));
  expect(await ttlOf()).toBe('25h');
  const again = await versionOf(put(store, 'a', 'held', idle));
  expect(await ttlOf()).toBeUndefined();
  await versionOf(put(store, 'a', undefined, again));
  expect(await ttlOf()).toBe('25h');
});

it('a record that the server deleted is absent, and its old version conflicts', async () => {
  const connection = await connectionTo((await startedNats()).url);
  const store = storeOn(connection);
  await store.read(['a'], limit);
  const given = headers();
  given.set('Nats-TTL', '1s');
  await connection.request('$KV.locks.a', 'soon gone', { headers: given, timeout: 2_000 });
  const [, version] = (await valueOf(store, 'a')) ?? [];
  await waitUntil(async () => (await valueOf(store, 'a')) === undefined, { what: 'the record to end' });
  expect(await put(store, 'a', 'late', version)).toEqual({ status: 'conflict' });
  expect(await versionOf(put(store, 'a', 'new'))).toBeGreaterThan(Number(version));
});

it('tells of changes of the watched record alone, after each was stored', async () => {
  const server = await startedNats();
  const [writer, watcher] = [
    storeOn(await connectionTo(server.url)),
    storeOn(await connectionTo(server.url)),
  ];
  let version = await versionOf(put(writer, 'a', '0'));
  const seen: string[] = [];
  const stop = watcher.watch('a', () => {
    void valueOf(watcher, 'a').then((found) => seen.push(found?.[0] ?? ''));
  });
  // The requests of a connection are served in order: the subscription is there.
  await watcher.read(['a'], limit);
  for (let round = 1; round <= 50; round += 1) {
    await put(writer, 'b', 'other');
    version = await versionOf(put(writer, 'a', String(round), version));
    await waitUntil(() => seen.length >= round, { what: 'the change to be told' });
  }
  expect(seen).toEqual(Array.from({ length: 50 }, (_, index) => String(index + 1)));
  stop();
  await versionOf(put(writer, 'a', 'last', version));
  await watcher.read(['a'], limit);
  expect(seen).toHaveLength(50);
});

it('the oldest client that is supported does all of it', async () => {
  const connection = await connectWith30({ servers: (await startedNats()).url });
  onTestFinished(() => connection.close());
  const store = storeOn(connection as unknown as NatsConnection);
  let told = 0;
  store.watch('a', () => (told += 1));
  const first = await versionOf(put(store, 'a', 'one'));
  expect(await put(store, 'a', 'late')).toMatchObject({ status: 'conflict' });
  const second = await versionOf(put(store, 'a', 'two', first, true));
  expect(await put(store, 'a', 'late', first)).toEqual({ status: 'conflict' });
  for await (const record of store.list('', limit)) expect(record.version).toBe(second);
  await waitUntil(() => told >= 2, { what: 'the changes to be told' });
  await versionOf(put(store, 'a', undefined, second));
  expect(await valueOf(store, 'a')).toBeUndefined();
});

it('the time of the server is told to the call that has found the bucket, and to no other: for that it is of the past', async () => {
  const { url } = await startedNats();
  const store = storeOn(await connectionTo(url));
  const before = Date.now();
  const [first, second] = await Promise.all([store.read(['a'], limit), store.read(['a'], limit)]);
  expect(first.now).toBeGreaterThanOrEqual(before - 1);
  expect(first.now).toBeLessThanOrEqual(Date.now() + 1);
  expect(second).not.toHaveProperty('now');
  expect(await put(store, 'a', 'one')).not.toHaveProperty('now');
});

it('the time of the server is told when it is asked for, by the request that finds the bucket or by one more', async () => {
  const { url } = await startedNats();
  const connection = await connectionTo(url);
  const store = storeOn(connection);
  for (const requests of [3, 1]) {
    const [before, sent] = [Date.now(), connection.stats().outMsgs];
    const now = await store.askTime();
    expect(now).toBeGreaterThanOrEqual(before - 1);
    expect(now).toBeLessThanOrEqual(Date.now() + 1);
    // The first one subscribes to the answers, and makes the bucket.
    expect(connection.stats().outMsgs - sent).toBeLessThanOrEqual(requests);
  }
});

it('an acquire and its release are two requests, besides those that find the bucket', async () => {
  const { url } = await startedNats();
  const connection = await connectionTo(url);
  const locks = createLocks(natsBackend(connection));
  onTestFinished(() => locks.close());
  const sent: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    const before = connection.stats().outMsgs;
    await (await locks.lock('a').acquire()).release();
    sent.push(connection.stats().outMsgs - before);
  }
  // The first one looks for the bucket, and makes it.
  expect(sent).toEqual([4, 2, 2]);
});

it('a server that tells no time is refused at opening, with what to do; with an observed expiry it serves', async () => {
  const { url } = await startedNats();
  const older = await withoutTimes(url);
  const store = storeOn(await connectionTo(older));
  const refused = await store.read(['a'], limit).catch((error: unknown) => error);
  expect(refused).toMatchObject({
    name: 'BucketError',
    message: expect.stringContaining("expiry: 'observed'"),
  });
  expect(store.isRetryable(refused)).toBe(false);
  const connection = await connectionTo(older);
  const locks = createLocks(natsBackend(connection, { expiry: 'observed' }));
  onTestFinished(() => locks.close());
  for (let round = 0; round < 2; round += 1) await (await locks.lock('a').acquire()).release();
  const before = connection.stats().outMsgs;
  await (await locks.lock('a').acquire()).release();
  expect(connection.stats().outMsgs - before).toBe(2);
});

/** Makes a server look as one before 2.10: what stands between renames the field of the time. */
async function withoutTimes(url: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const proxy = createServer((client) => {
    const server = createConnection(Number(port), hostname);
    const end = (): void => void [client.destroy(), server.destroy()];
    for (const socket of [client, server]) socket.on('error', end).on('close', end);
    client.pipe(server);
    server.on('data', (data) => {
      client.write(Buffer.from(data.toString('latin1').replaceAll('"ts":', '"tx":'), 'latin1'));
    });
  });
  await new Promise<void>((listening) => proxy.listen(0, '127.0.0.1', listening));
  onTestFinished(() => void proxy.close());
  return `nats://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}

it('a value that something else has put fails its own name', async () => {
  const { url } = await startedNats();
  const connection = await connectionTo(url);
  const locks = createLocks(natsBackend(connection));
  onTestFinished(() => locks.close());
  const good = await locks.lock('good').acquire();
  await put(storeOn(connection), 'locks/lock/bad', 'a value of the application');
  await expect(locks.lock('bad').acquire()).rejects.toMatchObject({
    code: 'LOCK_BACKEND',
    message: expect.stringContaining('locks/lock/bad') as string,
  });
  const listed: string[] = [];
  for await (const { name } of locks.list()) listed.push(name);
  expect(listed).toEqual(['good']);
  await good.release();
});
