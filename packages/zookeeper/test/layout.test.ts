import { once } from 'node:events';
import { createLocks } from '@locks/core';
import { startZookeeper, type ZooKeeperServer } from '@locks/test-servers';
import zookeeper from 'node-zookeeper-client';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { zookeeperBackend } from '../src/index.ts';

let server: ZooKeeperServer;
const PERSISTENT = 0;
let count = 0;
/** A path that no other test uses. */
const fresh = () => `/layout${++count}`;

beforeAll(async () => {
  server = await startZookeeper();
});
afterAll(async () => {
  await server.stop();
});

function locksAt(path: string) {
  const locks = createLocks(zookeeperBackend(server.address, { path }));
  onTestFinished(() => locks.close());
  return locks;
}

async function administrator() {
  const client = zookeeper.createClient(server.address, {
    sessionTimeout: 10_000,
    spinDelay: 100,
    retries: 0,
  });
  client.connect();
  await once(client as never, 'connected');
  onTestFinished(() => client.close());
  const done = (request: (callback: (error?: Error | null) => void) => void) =>
    new Promise<void>((resolve, reject) => request((error) => (error ? reject(error) : resolve())));
  return {
    async mark(path: string, layout: string): Promise<void> {
      await done((callback) => client.create(path, Buffer.alloc(0), PERSISTENT, callback)).catch(
        () => undefined,
      );
      await done((callback) => client.create(`${path}/::layout`, Buffer.from(layout), PERSISTENT, callback));
    },
    unmark: (path: string) => done((callback) => client.remove(`${path}/::layout`, callback)),
    childrenOf: (path: string) =>
      new Promise<readonly string[]>((resolve, reject) =>
        client.getChildren(path, (error, names = []) => (error ? reject(error) : resolve(names))),
      ),
  };
}

test.each([
  ['newer', '2', 'NEWER_SCHEMA', 'upgrade this process'],
  ['older', '0', 'OLDER_SCHEMA', 'stop all processes of the older version, then delete the node /layout'],
])(
  'an ensemble with a %s layout is refused at once, and nothing is written',
  async (_, found, code, toDo) => {
    const [path, admin] = [fresh(), await administrator()];
    await admin.mark(path, found);
    const locks = locksAt(path);
    const refusal = { code: 'LOCK_BACKEND', cause: { name: 'StoreLayoutError', code } };
    await expect(locks.lock('a').acquire({ waitMs: 60_000 })).rejects.toMatchObject(refusal);
    await expect(locks.lock('a').tryAcquire()).rejects.toMatchObject(refusal);
    const refused: unknown = await locks.forceRelease('a').catch((error: unknown) => error);
    expect(refused).toMatchObject(refusal);
    expect(String(refused).toLowerCase()).toContain(toDo);
    expect(await admin.childrenOf(path)).toEqual(['::layout']);
  },
);

test('the first process marks the layout, which no list shows; who only looks does not', async () => {
  const [path, admin] = [fresh(), await administrator()];
  const [first, second] = [locksAt(path), locksAt(path)];
  expect((await second.inspect('a')).holders).toEqual([]);
  await expect(admin.childrenOf(path)).rejects.toThrow('NO_NODE');
  await Promise.all([first.lock('a').acquire(), second.lock('b').acquire()]);
  expect(await admin.childrenOf(path)).toContain('::layout');
  const listed: string[] = [];
  for await (const { name } of first.list()) listed.push(name);
  expect(listed.toSorted()).toEqual(['a', 'b']);
});

test('a running process goes on where the marker was deleted; one that was refused does then', async () => {
  const [path, admin] = [fresh(), await administrator()];
  const running = locksAt(path);
  await running.lock('a').acquire();
  await admin.unmark(path);
  await admin.mark(path, '2');
  const refused = locksAt(path);
  await expect(refused.lock('b').tryAcquire()).rejects.toMatchObject({ cause: { code: 'NEWER_SCHEMA' } });
  await admin.unmark(path);
  expect(await running.lock('c').tryAcquire()).toBeDefined();
  expect(await refused.lock('b').tryAcquire()).toBeDefined();
});
