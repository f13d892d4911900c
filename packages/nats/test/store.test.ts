import { waitUntil } from '@locks/test-servers';
import { headers, type NatsConnection } from '@nats-io/transport-node';
import { connect as connectWith30 } from 'transport-node-3.0';
import { expect, it, onTestFinished } from 'vitest';
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
