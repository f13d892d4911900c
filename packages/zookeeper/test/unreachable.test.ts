import { createRequire } from 'node:module';
import { createLocks } from '@locks/core';
import { freePort, startZookeeper } from '@locks/test-servers';
import { expect, test } from 'vitest';
import { zookeeperBackend } from '../src/index.ts';
import type { NodeZooKeeperClient } from '../src/node-client-types.ts';

const { createClient } = createRequire(import.meta.url)('node-zookeeper-client') as {
  createClient(servers: string, options: object): NodeZooKeeperClient;
};

const cannotConnect = (address: string) => ({
  code: 'LOCK_BACKEND',
  message: expect.stringContaining(`ECONNREFUSED ${address}`),
  cause: expect.objectContaining({ code: 'ECONNREFUSED' }),
});

test.each(['the backend opens', 'is given'])(
  'servers that are away are named with the error of the connection, with a client that %s',
  async (which) => {
    const address = `127.0.0.1:${await freePort()}`;
    const client = createClient(address, { spinDelay: 20 });
    const locks = createLocks(
      which === 'is given'
        ? zookeeperBackend(client)
        : zookeeperBackend(address, { connectTimeoutMs: 1_000 }),
      { answerMs: 2_000 },
    );
    if (which === 'is given') client.connect();
    const refused = cannotConnect(address);
    await expect(locks.lock('a').acquire({ waitMs: 500 })).rejects.toMatchObject(refused);
    await expect(locks.lock('a').tryAcquire()).rejects.toMatchObject(refused);
    await expect(locks.ping({ answerMs: 300 })).rejects.toMatchObject(refused);
    await locks.close();
    if (which === 'is given') client.close();
  },
);

test('a wait ends as a failure of the store where that went away, though the lock was contended before', async () => {
  const server = await startZookeeper();
  const locks = createLocks(zookeeperBackend(server.address));
  await locks.lock('a').acquire();
  const waiting = expect(locks.lock('a').acquire({ waitMs: 3_000 })).rejects.toMatchObject(
    cannotConnect(server.address),
  );
  await locks.lock('b').acquire();
  await server.stop();
  await waiting;
  await locks.close();
});
