import { createLocks } from '@locks/core';
import { freePort, startCluster, startRedis, waitUntil } from '@locks/test-servers';
import { Cluster, Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { redisBackend } from '../src/index.ts';

describe('a server that is away', () => {
  const cannotConnect = (port: number) => ({
    code: 'LOCK_BACKEND',
    message: expect.stringContaining(`ECONNREFUSED 127.0.0.1:${port}`),
    cause: expect.objectContaining({ code: 'ECONNREFUSED' }),
  });

  it.each([
    ['the errors of its client are listened to', true],
    ['its user does not listen to errors', false],
  ])('is named with the error of the connection where %s', async (_, listens) => {
    const port = await freePort();
    const client = new Redis({ port, host: '127.0.0.1', maxRetriesPerRequest: null });
    if (listens) client.on('error', () => undefined);
    const locks = createLocks(redisBackend(client));
    const refused = cannotConnect(port);
    await expect(locks.lock('a').acquire({ waitMs: 300 })).rejects.toMatchObject(refused);
    await expect(locks.lock('a').tryAcquire({ waitMs: 300 })).rejects.toMatchObject(refused);
    await expect(locks.ping({ waitMs: 300 })).rejects.toMatchObject(refused);
    await locks.close();
    client.disconnect();
  });

  it('is named where the client reports only that it gave up on a command', async () => {
    const port = await freePort();
    const client = new Redis({ port, host: '127.0.0.1', maxRetriesPerRequest: 0 });
    client.on('error', () => undefined);
    const locks = createLocks(redisBackend(client));
    await expect(locks.lock('a').acquire({ waitMs: 300 })).rejects.toMatchObject(cannotConnect(port));
    await locks.close();
    client.disconnect();
  });

  it('ends a client that does not connect again, which says why', async () => {
    const port = await freePort();
    const client = new Redis({ port, host: '127.0.0.1', retryStrategy: () => null });
    client.on('error', () => undefined);
    const locks = createLocks(redisBackend(client));
    const error: unknown = await locks
      .lock('a')
      .acquire()
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject(cannotConnect(port));
    expect(String(error)).toMatch(/gave up connecting, and has ended/);
    await locks.close();
  });

  it('ends a wait as a failure of the store, though the lock was contended before', async () => {
    const own = await startRedis();
    const client = new Redis({ port: own.port, host: '127.0.0.1' });
    client.on('error', () => undefined);
    const locks = createLocks(redisBackend(client));
    await locks.lock('a').acquire();
    const waiting = expect(locks.lock('a').acquire({ waitMs: 3_000 })).rejects.toMatchObject(
      cannotConnect(own.port),
    );
    await waitUntil(async () => (await locks.inspect('a')).waiters.length > 0, { what: 'a waiter' });
    await own.stop();
    await waiting;
    await locks.close();
    client.disconnect();
  });
});

describe('a cluster of which the master of a lock is away', () => {
  it('ends a wait as a failure of the store', async () => {
    const cluster = await startCluster({ replicasPerMaster: 0 });
    const client = new Cluster(cluster.roots);
    client.on('error', () => undefined);
    const locks = createLocks(redisBackend(client));
    await locks.lock('a').acquire();
    const waiting = expect(locks.lock('a').acquire({ waitMs: 4_000 })).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
    });
    await waitUntil(async () => (await locks.inspect('a')).waiters.length > 0, { what: 'a waiter' });
    await (await cluster.slotOwner(cluster.slotOf('lock:a'))).stop();
    await waiting;
    await locks.close();
    client.disconnect();
    await cluster.stop();
  });
});

describe('a client for one server on a node of a cluster', () => {
  it('is refused at once by every call, which says which client to pass', async () => {
    const cluster = await startCluster({ replicasPerMaster: 0 });
    const client = new Redis(cluster.nodes[0]?.port ?? 0);
    const locks = createLocks(redisBackend(client));
    const wrongClient = { code: 'LOCK_INVALID_ARGUMENT', message: expect.stringContaining('new Cluster(') };
    const names = Array.from({ length: 8 }, (_, index) => `name-${index}`);
    const elsewhere = names.filter((name) => cluster.slotOf(`lock:${name}`) > 16_384 / 3) as [string, string];
    const lock = locks.lock(elsewhere[0]);
    await expect(lock.acquire()).rejects.toMatchObject(wrongClient);
    await expect(lock.tryAcquire()).rejects.toMatchObject(wrongClient);
    await expect(locks.all(elsewhere.map((name) => locks.lock(name))).acquire()).rejects.toMatchObject(
      wrongClient,
    );
    await expect(locks.semaphore(elsewhere[0], 2).acquire()).rejects.toMatchObject(wrongClient);
    await expect(locks.inspect(elsewhere[0])).rejects.toMatchObject(wrongClient);
    await expect(locks.forceRelease(elsewhere[0])).rejects.toMatchObject(wrongClient);
    const first = locks.list()[Symbol.asyncIterator]().next();
    await expect(first).rejects.toMatchObject(wrongClient);
    await locks.close();
    client.disconnect();
    await cluster.stop();
  });
});
