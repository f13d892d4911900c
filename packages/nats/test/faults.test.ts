import { startNatsCluster, startProxy, waitUntil } from '@locks/test-servers';
import { expect, it, onTestFinished } from 'vitest';
import { connectionTo, limit, put, startedNats, storeOn, valueOf, versionOf } from './fixture.ts';

const short = { ...limit, timeoutMs: 300 };

it('a paused server: a request fails in its time, may be repeated, and works when the server is back', async () => {
  const server = await startedNats();
  const store = storeOn(await connectionTo(server.url));
  const version = await versionOf(put(store, 'a', 'one'));
  await server.pause();
  const startedAt = performance.now();
  const failed = await store.read(['a'], short).catch((error: unknown) => error);
  expect(performance.now() - startedAt).toBeLessThan(1_500);
  expect(store.isRetryable(failed)).toBe(true);
  server.resume();
  expect(await valueOf(store, 'a')).toEqual(['one', version]);
});

it('a killed server keeps what it acknowledged; versions go on', async () => {
  const server = await startedNats();
  const store = storeOn(await connectionTo(server.url));
  const version = await versionOf(put(store, 'a', 'one'));
  await server.restart();
  const found = await waitUntil(() => valueOf(store, 'a').catch(() => undefined), { what: 'an answer' });
  expect(found).toEqual(['one', version]);
  expect(await versionOf(put(store, 'a', 'two', version))).toBeGreaterThan(version);
});

it('a lost connection: what is watched is told again after it, and a closed one is named', async () => {
  const server = await startedNats();
  const proxy = await startProxy(server, { protocol: 'raw' });
  onTestFinished(() => proxy.stop());
  const connection = await connectionTo(`nats://${proxy.host}:${proxy.port}`);
  const [store, writer] = [storeOn(connection), storeOn(await connectionTo(server.url))];
  let version = await versionOf(put(writer, 'a', '0'));
  let told = 0;
  store.watch('a', () => (told += 1));
  await store.read(['a'], limit);
  proxy.cut();
  await waitUntil(() => valueOf(store, 'a').catch(() => undefined), { what: 'the connection to be back' });
  version = await versionOf(put(writer, 'a', '1', version));
  await waitUntil(() => told > 0, { what: 'the change to be told' });
  expect(store.connectionError()).toBeUndefined();
  await connection.close();
  expect(store.connectionError()).toBeInstanceOf(Error);
  const failed = await store.read(['a'], limit).catch((error: unknown) => error);
  expect(store.isRetryable(failed)).toBe(false);
});

it('a cluster of three: the leader is killed among racing writers, no write is lost, and none wins twice', async () => {
  const cluster = await startNatsCluster();
  onTestFinished(() => cluster.stop());
  const stores = await Promise.all(
    Array.from({ length: 6 }, async () => storeOn(await connectionTo(cluster.urls))),
  );
  const [first = storeOn(await connectionTo(cluster.urls))] = stores;
  await versionOf(put(first, 'counter', '0'));
  let told = 0;
  first.watch('counter', () => (told += 1));
  await first.read(['counter'], limit);
  const leader = await cluster.leader('KV_locks');
  /** Added for certain; those whose write got no answer may have been added too. */
  let added = 0;
  let unknown = 0;
  let isKilled = false;
  let addedAfter = 0;
  const errors: unknown[] = [];
  const add = async (store: (typeof stores)[number]): Promise<void> => {
    while (addedAfter < 60) {
      try {
        const [value, version] = (await valueOf(store, 'counter')) ?? [];
        const { status } = await put(store, 'counter', String(Number(value) + 1), version).catch(
          (error: unknown) => {
            unknown += 1;
            throw error;
          },
        );
        if (status !== 'written') continue;
        added += 1;
        if (isKilled) addedAfter += 1;
      } catch (error) {
        errors.push(error);
        expect(store.isRetryable(error)).toBe(true);
      }
    }
  };
  const adding = Promise.all(stores.map(add));
  await waitUntil(() => added > 50, { what: 'some writes' });
  await leader.kill();
  isKilled = true;
  await cluster.waitForNewLeader('KV_locks', leader);
  await adding;
  const [value] = (await valueOf(first, 'counter')) ?? [];
  expect(Number(value)).toBeGreaterThanOrEqual(added);
  expect(Number(value)).toBeLessThanOrEqual(added + unknown);
  expect(told).toBeGreaterThan(50);
});

it('a request whose connection breaks fails at once, and one made meanwhile waits for the connection', async () => {
  const server = await startedNats();
  const store = storeOn(await connectionTo(server.url, { reconnectTimeWait: 100 }));
  const version = await versionOf(put(store, 'a', 'one'));
  await server.pause();
  const broken = store.read(['a'], limit).catch((error: unknown) => error);
  const brokeAt = performance.now();
  await server.kill();
  expect(store.isRetryable(await broken)).toBe(true);
  expect(performance.now() - brokeAt).toBeLessThan(1_000);
  await waitUntil(() => store.connectionError() !== undefined, { what: 'the connection to be down' });
  const late = await store.read(['a'], { ...limit, timeoutMs: 200 }).catch((error: unknown) => error);
  expect(store.isRetryable(late)).toBe(true);
  const meanwhile = valueOf(store, 'a');
  await server.restart();
  expect(await meanwhile).toEqual(['one', version]);
  expect(store.connectionError()).toBeUndefined();
});
