import { once } from 'node:events';
import { createRequire } from 'node:module';
import { createLocks } from '@locks/core';
import type { Grant } from '@locks/core/backend';
import { startZookeeper, waitUntil, type ZooKeeperServer } from '@locks/test-servers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { zookeeperBackend } from '../src/index.ts';
import type { NodeZooKeeperClient } from '../src/node-client-types.ts';

type Client = NodeZooKeeperClient & {
  once(event: 'connected', listener: () => void): unknown;
  setData(path: string, data: Buffer, callback: (error?: Error | null) => void): void;
};

const { createClient } = createRequire(import.meta.url)('node-zookeeper-client') as {
  createClient(servers: string): Client;
};

let server: ZooKeeperServer;

beforeAll(async () => {
  server = await startZookeeper();
});
afterAll(() => server.stop());

/** Locks through a client of ours, and how often it listed. */
async function connected() {
  const client = createClient(server.address);
  client.connect();
  await once(client as never, 'connected');
  let lists = 0;
  const getChildren = client.getChildren.bind(client);
  client.getChildren = (...args) => {
    lists += 1;
    getChildren(...args);
  };
  let watches = 0;
  const getData = client.getData.bind(client) as (...args: unknown[]) => void;
  client.getData = (...args: unknown[]) => {
    const answer = args.at(-1) as (...given: unknown[]) => void;
    // The path, the watcher, the callback.
    const isWatch = args.length === 3;
    getData(...args.slice(0, -1), (...given: unknown[]) => {
      if (isWatch) watches += 1;
      answer(...given);
    });
  };
  const locks = createLocks(zookeeperBackend(client));
  return {
    client,
    locks,
    lists: () => lists,
    /** Resolves when the client watches so many nodes. */
    watching: (nodes: number) => waitUntil(async () => watches >= nodes, { what: `${nodes} watches` }),
    [Symbol.asyncDispose]: async () => {
      await locks.close();
      client.close();
    },
  };
}

const done = (request: (callback: (error?: Error | null) => void) => void) =>
  new Promise<void>((resolve, reject) => request((error) => (error ? reject(error) : resolve())));

/** The node of the last of so many acquisitions that hold or wait. */
async function lastNode(client: Client, resource: string, count: number): Promise<string> {
  let names: readonly string[] = [];
  await waitUntil(
    async () => {
      await done((callback) =>
        client.getChildren(`/locks/:${resource}`, (error, children = []) => {
          names = children;
          callback(error);
        }),
      );
      return names.length === count;
    },
    { what: `${count} nodes` },
  );
  const sequence = (name: string) => Number(name.split('.')[2]);
  const last = names.toSorted((a, b) => sequence(a) - sequence(b)).at(-1) as string;
  return `/locks/:${resource}/${last}`;
}

/** Asserts that an acquire still waits when this client has looked at the queue again, and acted on what it saw. */
async function expectWaiting(acquire: Promise<unknown>, client: Client, resource: string, count: number) {
  let entered = false;
  void acquire.then(() => (entered = true));
  // Requests of one connection are answered in order: its look comes first, and the read before a grant second.
  for (let look = 0; look < 3; look += 1) await lastNode(client, resource, count);
  expect(entered).toBe(false);
}

test('holds that are released together are deleted so many at once, each once', async () => {
  await using a = await connected();
  const backend = zookeeperBackend(a.client);
  const call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
  const grants: Grant[] = [];
  for (let index = 0; index < 400; index += 1) {
    const acquisitionId = `id-${index}`;
    const request = { resource: 'all', acquisitionId, mode: { kind: 'shared' }, ttlMs: 30_000 } as const;
    const attempt = await backend.attempt(request, false, call);
    if (attempt.status !== 'granted') return expect.fail(`it is ${attempt.status}`);
    grants.push(attempt.grant);
  }
  let underWay = 0;
  let most = 0;
  let sent = 0;
  const remove = a.client.remove.bind(a.client);
  a.client.remove = (path, done) => {
    if (!path.includes('id-')) return remove(path, done);
    sent += 1;
    most = Math.max(most, (underWay += 1));
    remove(path, (error) => {
      underWay -= 1;
      done(error);
    });
  };
  const released = grants.map((grant) => backend.release(grant, call));
  // A second sending of a delete that has no answer yet would come after it on the same connection.
  released.push(...grants.map((grant) => backend.release(grant, call)));
  expect(new Set(await Promise.all(released))).toEqual(new Set(['released']));
  expect(sent).toBe(grants.length);
  expect(most).toBeLessThanOrEqual(256);
  await backend.close();
});

test('waiters that come together list the queue once, and hand over to each other without a list', async () => {
  await using a = await connected();
  const holder = await a.locks.lock('many').acquire();
  const before = a.lists();
  const order: number[] = [];
  const waiters = Array.from({ length: 100 }, async (_, index) => {
    const lease = await a.locks.lock('many').acquire();
    order.push(index);
    await lease.release();
  });
  await lastNode(a.client, 'many', 101);
  const queued = a.lists();
  expect(queued - before).toBeLessThan(20);
  await holder.release();
  await Promise.all(waiters);
  expect(order).toEqual(waiters.map((_, index) => index));
  expect(a.lists() - queued).toBeLessThan(5);
});

test('a waiter whose node an administrator deleted queues again, although the hold ahead of it ends', async () => {
  await using a = await connected();
  await using b = await connected();
  const holder = await a.locks.lock('deleted').acquire();
  const first = a.locks.lock('deleted').acquire();
  const node = await lastNode(b.client, 'deleted', 2);
  const second = b.locks.lock('deleted').acquire();
  await lastNode(b.client, 'deleted', 3);
  await done((callback) => b.client.remove(node, callback));
  await holder.release();
  const held = await second;
  await expectWaiting(first, b.client, 'deleted', 2);
  await held.release();
  await (await first).release();
});

test('a waiter that wakes because the data of the node ahead changed goes on waiting', async () => {
  await using a = await connected();
  const holder = await a.locks.lock('changed').acquire();
  const node = await lastNode(a.client, 'changed', 1);
  const waiting = a.locks.lock('changed').acquire();
  await lastNode(a.client, 'changed', 2);
  const before = a.lists();
  await waitUntil(
    async () => {
      await done((callback) => a.client.setData(node, Buffer.from('{}'), callback));
      return a.lists() > before;
    },
    { what: 'its look at the queue' },
  );
  await expectWaiting(waiting, a.client, 'changed', 2);
  await holder.release();
  await (await waiting).release();
});

test('a waiter behind one that gives up goes on waiting', async () => {
  await using a = await connected();
  const holder = await a.locks.lock('given-up').acquire();
  const gaveUp = new AbortController();
  const ahead = a.locks.lock('given-up').acquire({ signal: gaveUp.signal });
  await lastNode(a.client, 'given-up', 2);
  const waiting = a.locks.lock('given-up').acquire();
  await lastNode(a.client, 'given-up', 3);
  // The holder's node, and that of the waiter ahead.
  await a.watching(2);
  gaveUp.abort();
  await expect(ahead).rejects.toThrow();
  await expectWaiting(waiting, a.client, 'given-up', 2);
  await holder.release();
  await (await waiting).release();
});

test('a writer waits for all readers, although the one right ahead of it leaves first', async () => {
  await using a = await connected();
  const { read, write } = a.locks.readWriteLock('readers');
  const first = await read.acquire();
  const second = await read.acquire();
  const writer = write.acquire();
  await lastNode(a.client, 'readers', 3);
  await a.watching(2);
  await second.release();
  await expectWaiting(writer, a.client, 'readers', 2);
  await first.release();
  await (await writer).release();
});
