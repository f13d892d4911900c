import { GetItemCommand, PutItemCommand, ScanCommand } from '@aws-sdk/client-dynamodb';
import { createLocks } from '@locks/core';
import { startProxy } from '@locks/test-servers';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { dynamodbBackend } from '../src/index.ts';
import { createTable, limit, NASTY_KEYS, openClient, openStore, server, textOf, write } from './fixture.ts';

describe('records of a table', () => {
  it('are written where the version is the expected one, and a conflict gives what is there', async () => {
    const { store } = await openStore();
    const first = await store.write(write('k', 'one'), limit());
    expect(first).toMatchObject({ status: 'written' });
    const again = await store.write(write('k', 'two'), limit());
    expect(again).toMatchObject({
      status: 'conflict',
      present: { version: (first as { version: string }).version },
    });
    const second = await store.write(write('k', 'two', (first as { version: string }).version), limit());
    expect(second.status).toBe('written');
    const late = await store.write(write('k', 'three', (first as { version: string }).version), limit());
    expect(textOf((late as { present: { value: Uint8Array } }).present)).toBe('two');
    const { records } = await store.read(['k'], limit());
    expect(textOf(records[0])).toBe('two');
    expect(records[0]?.version).toBe((second as { version: string }).version);
  });

  it('are deleted with the expected version only; a write that expects one then finds none', async () => {
    const { store } = await openStore();
    const { version } = (await store.write(write('k', 'one'), limit())) as { version: string };
    expect(await store.write(write('k', undefined, 'another'), limit())).toMatchObject({
      status: 'conflict',
    });
    expect((await store.write(write('k', undefined, version), limit())).status).toBe('written');
    expect(await store.write(write('k', 'two', version), limit())).toMatchObject({
      status: 'conflict',
      present: 'absent',
    });
    expect((await store.read(['k'], limit())).records).toEqual([undefined]);
    expect((await store.write(write('k', undefined), limit())).status).toBe('written');
  });

  it('one of twenty racers wins, each time', async () => {
    const { store } = await openStore();
    let version: string | undefined;
    for (let round = 0; round < 5; round += 1) {
      const racers = Array.from({ length: 20 }, (_, index) =>
        store.write(write('k', `${round}.${index}`, version), limit()),
      );
      const written = (await Promise.all(racers)).filter(({ status }) => status === 'written');
      expect(written).toHaveLength(1);
      version = (written[0] as { version: string }).version;
    }
  });

  it('have a version that never comes back, with the same value and after a deletion too', async () => {
    const { store } = await openStore();
    const versions = new Set<unknown>();
    let version: string | undefined;
    for (let round = 0; round < 10; round += 1) {
      const written = await store.write(write('k', 'same', version), limit());
      ({ version } = written as { version: string });
      versions.add(version);
      if (round % 3 === 2) {
        await store.write(write('k', undefined, version), limit());
        version = undefined;
      }
    }
    expect(versions.size).toBe(10);
  });

  it('keep keys of any kind apart, read alone and together', async () => {
    const { store } = await openStore();
    for (const key of NASTY_KEYS) await store.write(write(key, key), limit());
    for (const key of NASTY_KEYS) {
      expect(textOf((await store.read([key], limit())).records[0])).toBe(key);
    }
    const { records } = await store.read([...NASTY_KEYS, 'absent', NASTY_KEYS[0]], limit());
    expect(records.map(textOf)).toEqual([...NASTY_KEYS, undefined, NASTY_KEYS[0]]);
  });

  it('are read with what DynamoDB left out of its first answers', async () => {
    const { store } = await openStore();
    // 60 records of 390 KB are more than the 16 MB of one answer.
    const keys = Array.from({ length: 60 }, (_, index) => `k${index}`);
    const value = 'v'.repeat(390_000);
    for (const key of keys) await store.write(write(key, `${key}${value}`), limit());
    const { records } = await store.read(keys, limit());
    expect(records.map((record) => textOf(record)?.slice(0, -value.length))).toEqual(keys);
  });

  it('are listed by what their keys begin with, over several pages', async () => {
    const { store } = await openStore();
    const value = 'v'.repeat(300_000);
    for (let index = 0; index < 8; index += 1)
      await store.write(write(`a/${index}`, `${index}${value}`), limit());
    await store.write(write('b/1', 'other'), limit());
    const listed: string[] = [];
    for await (const record of store.list('a/', limit())) listed.push((textOf(record) ?? '')[0] ?? '');
    expect(listed.sort()).toEqual(['0', '1', '2', '3', '4', '5', '6', '7']);
  });

  it('expire only while they are idle', async () => {
    const { store, client, table } = await openStore({ idleTtlMs: 86_400_000 });
    const expiryOf = async () => {
      const { Item } = await client.send(new GetItemCommand({ TableName: table, Key: { key: { S: 'k' } } }));
      return Item?.['expiresAt']?.N;
    };
    const idle = await store.write({ ...write('k', 'free'), isIdle: true }, limit());
    const inSeconds = Number(await expiryOf()) - Date.now() / 1_000;
    expect(inSeconds).toBeGreaterThan(86_390);
    expect(inSeconds).toBeLessThan(86_410);
    await store.write(write('k', 'held', (idle as { version: string }).version), limit());
    expect(await expiryOf()).toBeUndefined();
  });

  it('lie under another key attribute if told so', async () => {
    const { store, client, table } = await openStore({ keyAttribute: 'pk' });
    await store.write(write('k', 'one'), limit());
    expect(textOf((await store.read(['k', 'l'], limit())).records[0])).toBe('one');
    const { Items } = await client.send(new ScanCommand({ TableName: table }));
    expect(Items?.map((item) => Object.keys(item).sort())).toEqual([['pk', 'value', 'version']]);
  });

  it('are as large as is said', async () => {
    const { store } = await openStore();
    const largest = 'v'.repeat(store.maxValueBytes);
    const key = `${'p'.repeat(512)}/lock/${'k'.repeat(512)}`;
    expect((await store.write({ ...write(key, largest), isIdle: true }, limit())).status).toBe('written');
  });
});

describe('what the network and the SDK do', () => {
  it('a write that the SDK repeats meets its own first sending, as a conflict with its own value', async () => {
    const client = openClient((await server()).url);
    const table = await createTable(client);
    let losing = 1;
    // The answer to the first sending is lost on its way, and the retries of the client send it again.
    client.middlewareStack.add(
      (next) => async (args) => {
        const result = await next(args);
        if (losing-- <= 0) return result;
        throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET', $retryable: {} });
      },
      { step: 'deserialize', priority: 'low' },
    );
    const { store } = await openStore({ client, table });
    const written = await store.write(write('k', 'mine'), limit());
    expect(written.status).toBe('conflict');
    expect(textOf((written as { present: { value: Uint8Array } }).present)).toBe('mine');
  });

  it('a paused server is given up with the signal of the request, and its sockets are free again', async () => {
    await using proxy = await startProxy(await server(), { protocol: 'raw' });
    const client = openClient(`http://127.0.0.1:${proxy.port}`);
    const { store } = await openStore({ client });
    proxy.blackhole();
    const requests = Array.from({ length: 60 }, () => store.read(['k'], limit(300)));
    const results = await Promise.allSettled(requests);
    for (const result of results) {
      expect(result.status).toBe('rejected');
      expect(store.isRetryable((result as PromiseRejectedResult).reason)).toBe(true);
    }
    await proxy.heal();
    expect((await store.read(['k'], limit())).records).toEqual([undefined]);
    await store.close();
    expect((await store.read(['k'], limit())).records).toEqual([undefined]);
  });

  it('a connection that is refused may be tried again', async () => {
    await using proxy = await startProxy(await server(), { protocol: 'raw' });
    const client = openClient(`http://127.0.0.1:${proxy.port}`, { maxAttempts: 1 });
    const { store } = await openStore({ client });
    proxy.refuse();
    proxy.reset();
    const error = await store.read(['k'], limit()).catch((reason: unknown) => reason);
    expect(store.isRetryable(error)).toBe(true);
  });

  it('a missing table is named, and what it must be; so is one with another key', async () => {
    const { store } = await openStore({ table: 'not-there' });
    const missing = await store.read(['k'], limit()).catch((reason: unknown) => reason);
    expect((missing as Error).message).toMatch(/no table "not-there".*partition key "key" of type S/);
    expect(store.isRetryable(missing)).toBe(false);
    const client = openClient((await server()).url);
    const table = await createTable(client, 'id');
    const other = await openStore({ client, table });
    for (const call of [
      () => other.store.read(['k'], limit()),
      () => other.store.read(['k', 'l'], limit()),
      () => other.store.write(write('k', 'v'), limit()),
    ]) {
      const error = await call().catch((reason: unknown) => reason);
      expect((error as Error).message).toMatch(/partition key "key" of type S/);
      expect(other.store.isRetryable(error)).toBe(false);
    }
  });

  it('credentials that are missing are no reason to try again', async () => {
    const credentials = async () => {
      throw Object.assign(new Error('no credentials here'), { name: 'CredentialsProviderError' });
    };
    const client = openClient((await server()).url, { credentials });
    const { store } = await openStore({ client, table: 'locks' });
    const error = await store.read(['k'], limit()).catch((reason: unknown) => reason);
    expect((error as Error).message).toContain('no credentials here');
    expect(store.isRetryable(error)).toBe(false);
  });
});

describe('the clock of the Date header', () => {
  it('is told with reads, writes and conflicts; holds end by it unless another expiry is chosen', async () => {
    const { store, client, table } = await openStore({ skewMs: 500 });
    expect(store.clock).toEqual({ stepMs: 1_000, skewMs: 500, endsHolds: true });
    const written = await store.write(write('k', 'one'), limit());
    const answers = [
      written,
      await store.write(write('k', 'two'), limit()),
      await store.read(['k'], limit()),
      await store.read(['k', 'l'], limit()),
    ];
    for (const { now = Number.NaN } of answers) {
      expect(now % 1_000).toBe(0);
      expect(Math.abs(now - Date.now())).toBeLessThan(5_000);
    }
    const { store: other } = await openStore({ client, table, expiry: 'observed' });
    expect(other.clock.endsHolds).toBe(false);
    expect(await other.read(['k'], limit())).toHaveProperty('now');
  });

  it("leaves nothing on the user's client", async () => {
    const { store, client, table } = await openStore();
    const before = client.middlewareStack.identify();
    await store.write(write('k', 'one'), limit());
    await store.read(['k'], limit());
    expect(client.middlewareStack.identify()).toEqual(before);
    const command = new PutItemCommand({ TableName: table, Item: { key: { S: 'other' } } });
    await client.send(command);
    expect(command.middlewareStack.identify().join()).not.toContain('locksAnswerTime');
  });
});

describe('what something else has written', () => {
  it.each([{ note: { S: 'of the application' } }, { value: { S: 'text' }, version: { S: '1' } }])(
    'fails its own name: %o',
    async (content) => {
      const { client, table } = await openStore();
      const locks = createLocks(dynamodbBackend(client, { table }));
      onTestFinished(() => locks.close());
      const good = await locks.lock('good').acquire();
      const Item = { key: { S: 'locks/lock/bad' }, ...content };
      await client.send(new PutItemCommand({ TableName: table, Item: Item as never }));
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
});

it('an idle item expires by the later of the clocks of the process and of DynamoDB', async () => {
  const { client, table, store } = await openStore({ idleTtlMs: 86_400_000 });
  const dayMs = 86_400_000;
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 30 * dayMs });
  onTestFinished(() => void vi.useRealTimers());
  const { now = 0 } = await store.read(['k'], limit());
  expect(now - Date.now()).toBeGreaterThan(29 * dayMs);
  await store.write({ ...write('k', 'one'), isIdle: true }, limit());
  const { Item } = await client.send(new GetItemCommand({ TableName: table, Key: { key: { S: 'k' } } }));
  expect(Number(Item?.['expiresAt']?.N) * 1_000).toBeGreaterThanOrEqual(now + dayMs);
});
