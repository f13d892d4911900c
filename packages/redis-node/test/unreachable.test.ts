import { createLocks } from '@locks/core';
import { startCluster, startRedis, waitUntil } from '@locks/test-servers';
import { createClient, createCluster } from 'redis';
import { describe, expect, it } from 'vitest';
import { redisBackend } from '../src/index.ts';

describe('a server that is away', () => {
  const cannotConnect = (port: number) => ({
    code: 'LOCK_BACKEND',
    message: expect.stringContaining(`ECONNREFUSED 127.0.0.1:${port}`),
    cause: expect.objectContaining({ code: 'ECONNREFUSED' }),
  });

  it('is named with the error of the connection, also by a wait that was contended before', async () => {
    const own = await startRedis();
    const client = createClient({ url: own.url });
    client.on('error', () => undefined);
    await client.connect();
    const locks = createLocks(redisBackend(client));
    await locks.lock('a').acquire();
    const refused = cannotConnect(own.port);
    const waiting = expect(locks.lock('a').acquire({ waitMs: 3_000 })).rejects.toMatchObject(refused);
    await waitUntil(async () => (await locks.inspect('a')).waiters.length > 0, { what: 'a waiter' });
    await own.stop();
    await waiting;
    await expect(locks.lock('b').acquire({ waitMs: 300 })).rejects.toMatchObject(refused);
    await expect(locks.lock('b').tryAcquire({ waitMs: 300 })).rejects.toMatchObject(refused);
    await expect(locks.ping({ waitMs: 300 })).rejects.toMatchObject(refused);
    await locks.close();
    client.destroy();
  });

  it('ends a client that does not connect again, which says why', async () => {
    const own = await startRedis();
    const client = createClient({
      url: own.url,
      socket: { reconnectStrategy: (_, cause) => ('code' in cause ? cause : 10) },
    });
    client.on('error', () => undefined);
    await client.connect();
    const locks = createLocks(redisBackend(client));
    await own.stop();
    await waitUntil(() => !client.isOpen, { what: 'the end of the client' });
    const error: unknown = await locks
      .lock('a')
      .acquire()
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject(cannotConnect(own.port));
    expect(String(error)).toMatch(/gave up connecting, and has ended/);
    await locks.close();
  });
});

describe('a cluster of which the master of a lock is away', () => {
  it('ends a wait as a failure of the store', async () => {
    const cluster = await startCluster({ replicasPerMaster: 0 });
    const client = createCluster({ rootNodes: cluster.roots.map((socket) => ({ socket })) });
    client.on('error', () => undefined);
    await client.connect();
    const locks = createLocks(redisBackend(client));
    await locks.lock('a').acquire();
    const waiting = expect(locks.lock('a').acquire({ waitMs: 4_000 })).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
    });
    await waitUntil(async () => (await locks.inspect('a')).waiters.length > 0, { what: 'a waiter' });
    await (await cluster.slotOwner(cluster.slotOf('lock:a'))).stop();
    await waiting;
    await locks.close();
    client.destroy();
    await cluster.stop();
  });
});

describe('a client for one server on a node of a cluster', () => {
  it('is refused at once by every call, which says which client to pass', async () => {
    const cluster = await startCluster({ replicasPerMaster: 0 });
    const client = await createClient({ socket: { port: cluster.nodes[0]?.port ?? 0 } }).connect();
    const locks = createLocks(redisBackend(client));
    const wrongClient = { code: 'LOCK_INVALID_ARGUMENT', message: expect.stringContaining('createCluster(') };
    const names = Array.from({ length: 8 }, (_, index) => `name-${index}`);
    const elsewhere = names.find((name) => cluster.slotOf(`lock:${name}`) > 16_384 / 3) ?? '';
    await expect(locks.lock(elsewhere).acquire()).rejects.toMatchObject(wrongClient);
    await expect(locks.inspect(elsewhere)).rejects.toMatchObject(wrongClient);
    const first = locks.list()[Symbol.asyncIterator]().next();
    await expect(first).rejects.toMatchObject(wrongClient);
    await locks.close();
    client.destroy();
    await cluster.stop();
  });
});
