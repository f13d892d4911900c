import { type EventEmitter, once } from 'node:events';
import { createRequire } from 'node:module';
import { createLocks } from '@locks/core';
import { startZookeeper, type ZooKeeperServer } from '@locks/test-servers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { zookeeperBackend } from '../src/index.ts';
import type { NodeZooKeeperClient } from '../src/node-client-types.ts';

let server: ZooKeeperServer;

beforeAll(async () => {
  server = await startZookeeper();
});

afterAll(async () => {
  await server.stop();
});

function locksAt(path = '/locks') {
  return createLocks(zookeeperBackend(server.address, { path }));
}

test('a holder and an inspector see the same token, even among many acquisitions at once', async () => {
  const [holders, others] = [locksAt(), locksAt()];
  const tokens: bigint[] = [];
  await Promise.all(
    Array.from({ length: 30 }, async (_, index) => {
      const lease = await (index % 2 ? holders : others).lock('busy').acquire();
      tokens.push(lease.fencingToken);
      const { holders: held } = await (index % 2 ? others : holders).inspect('busy');
      expect(held.map(({ fencingToken }) => fencingToken)).toEqual([lease.fencingToken]);
      await lease.release();
    }),
  );
  expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)));
  expect(new Set(tokens).size).toBe(30);
  await Promise.all([holders.close(), others.close()]);
});

test('a deep path is created; a chroot to the same path shares its locks, another path does not', async () => {
  const deep = locksAt('/apps/shop/locks');
  const lease = await deep.lock('same').acquire();
  const chroot = createLocks(zookeeperBackend(`${server.address}/apps`, { path: '/shop/locks' }));
  expect(await chroot.lock('same').tryAcquire()).toBeUndefined();
  const other = locksAt();
  await (await other.lock('same').acquire()).release();
  await lease.release();
  const next = await chroot.lock('same').acquire();
  expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
  await next.release();
  const writer = await chroot.readWriteLock('same').write.acquire();
  await writer.downgrade();
  const { holders } = await deep.inspect('same');
  expect(holders).toMatchObject([{ acquisitionId: writer.acquisitionId, mode: { kind: 'shared' } }]);
  await writer.release();
  await Promise.all([deep, chroot, other].map((locks) => locks.close()));
});

test('twelve managers on one client have one listener for each event, and none after their end', async () => {
  const library = createRequire(import.meta.url)('node-zookeeper-client') as {
    createClient(servers: string): NodeZooKeeperClient & EventEmitter;
  };
  const client = library.createClient(server.address);
  client.connect();
  await once(client, 'connected');
  const events = ['state', 'expired', 'authenticationFailed'] as const;
  const counts = () => events.map((event) => client.listenerCount(event));
  const before = counts();
  const managers = Array.from({ length: 12 }, () => createLocks(zookeeperBackend(client)));
  await Promise.all(managers.map((locks, index) => locks.lock(`of manager ${index}`).run(() => undefined)));
  expect(counts()).toEqual(before.map((count) => count + 1));
  await Promise.all(managers.map((locks) => locks.close()));
  expect(counts()).toEqual(before);
  client.close();
});

test('an access control list keeps out clients without credentials', async () => {
  const { ACL, Id, Permission, createClient } = createRequire(import.meta.url)('node-zookeeper-client') as {
    createClient(servers: string): NodeZooKeeperClient & EventEmitter;
    ACL: new (permission: number, id: unknown) => unknown;
    Id: new (scheme: string, id: string) => unknown;
    Permission: { ALL: number };
  };
  const owned = createLocks(
    zookeeperBackend(server.address, {
      path: '/owned',
      acl: [new ACL(Permission.ALL, new Id('auth', ''))],
      setUpClient: (client) => client.addAuthInfo('digest', Buffer.from('locks:secret')),
    }),
  );
  const lease = await owned.lock('secret').acquire();
  const stranger = locksAt('/owned');
  // A name that is in use, and one whose node the stranger would have to create.
  for (const name of ['secret', 'another']) {
    const refused = await stranger
      .lock(name)
      .acquire()
      .catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: 'LOCK_BACKEND', cause: { code: 'NO_AUTH' } });
  }
  await lease.release();
  const writer = await owned.readWriteLock('secret').write.acquire();
  const client = createClient(server.address);
  client.connect();
  await once(client, 'connected');
  const share = `/owned/:secret/s.${writer.acquisitionId}.0000000001`;
  await writer.downgrade();
  const code = await new Promise((resolve) => client.getData(share, (error) => resolve(error?.code)));
  expect(code).toBe(-102);
  client.close();
  await writer.release();
  await Promise.all([owned.close(), stranger.close()]);
});

test('close() ends in every state of the connection', async () => {
  const unreachable = createLocks(zookeeperBackend('127.0.0.1:1', { connectTimeoutMs: 200 }));
  const fails = unreachable.lock('x').acquire({ waitMs: 50 });
  await expect(fails).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
  await unreachable.close();

  const opening = locksAt();
  const acquiring = opening.lock('x').acquire();
  const closed = opening.close();
  await expect(acquiring).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
  await closed;
});
