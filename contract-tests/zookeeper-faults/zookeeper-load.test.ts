import { startZookeeper, waitUntil, type ZooKeeperServer } from '@locks/test-servers';
import type { NodeZooKeeperClient } from '@locks/zookeeper';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { childrenOf } from '../src/administration/zookeeper.ts';
import { figure } from '../src/fault-lab/observe.ts';
import Lab, { parentOf, untilQueued, countTraffic, requestsOf, type Traffic } from './lab.ts';

const WAITERS = 500;

let server: ZooKeeperServer;

beforeAll(async () => {
  server = await startZookeeper();
});

afterAll(async () => {
  await server.stop();
});

test('an uncontended lock is four requests in two round trips', async () => {
  await using lab = new Lab();
  const traffic: Traffic = { requests: new Map(), events: 0 };
  const locks = lab.locks(server, { setUpClient: (client) => countTraffic(client, traffic) });
  const lock = locks.lock('cost');
  // The first use makes the node of the resource.
  await (await lock.acquire()).release();
  traffic.requests.clear();
  for (let round = 0; round < 20; round += 1) await (await lock.acquire()).release();
  expect(Object.fromEntries(traffic.requests)).toEqual({
    getData: 20,
    create: 20,
    getChildren: 20,
    remove: 20,
  });
  figure('requests per acquire and release, uncontended', requestsOf(traffic) / 20, '');
});

test('500 waiters: a release fires at most two watches, and costs the same however many wait', async () => {
  await using lab = new Lab();
  const traffic: Traffic = { requests: new Map(), events: 0 };
  // Two clients: no hand-off is an affair of one process.
  const options = {
    sessionTimeoutMs: 20_000,
    setUpClient: (client: NodeZooKeeperClient) => countTraffic(client, traffic),
  };
  const [one, two] = [lab.locks(server, options), lab.locks(server, options)];
  const first = await one.lock('herd').acquire();
  const waiting = Array.from({ length: WAITERS }, (_, index) =>
    (index % 2 ? one : two).lock('herd').acquire({ waitMs: 60_000 }),
  );
  await untilQueued(server.address, 'herd', WAITERS + 1);
  // One for each waiter's predecessor.
  await waitUntil(async () => (await server.figure('watch_count')) >= WAITERS, { what: 'all watches' });
  let held = first;
  const rest = new Set(waiting);
  traffic.requests.clear();
  traffic.events = 0;
  const handOffs = 100;
  const startedAt = performance.now();
  for (let round = 0; round < handOffs; round += 1) {
    await held.release();
    const next = await Promise.race([...rest].map((work) => work.then((lease) => ({ lease, work }))));
    rest.delete(next.work);
    held = next.lease;
  }
  figure('hand-offs per second with 500 waiters', (handOffs * 1_000) / (performance.now() - startedAt), '');
  figure('requests per hand-off', requestsOf(traffic) / handOffs, '');
  figure('watches fired per hand-off', traffic.events / handOffs, '');
  expect(traffic.events).toBeLessThanOrEqual(2 * handOffs);
  expect(requestsOf(traffic)).toBeLessThanOrEqual(4 * handOffs);
  await Promise.all([one.close(), two.close()]);
  await Promise.allSettled(rest);
  await untilQueued(server.address, 'herd', 0);
});

test('nodes of resources that nobody uses are tidied away, while others come and go', async () => {
  await using lab = new Lab();
  const [first, second] = [lab.locks(server, { idleTtlMs: 200 }), lab.locks(server, { idleTtlMs: 200 })];
  const names = Array.from({ length: 400 }, (_, index) => `tidy-${index}`);
  const until = performance.now() + 1_500;
  let acquired = 0;
  // Nodes are deleted while others are about to use them.
  await Promise.all(
    [first, second, first, second].map(async (locks) => {
      while (performance.now() < until) {
        const name = names[Math.floor(Math.random() * names.length)] as string;
        await locks.lock(name).run(() => {
          acquired += 1;
        });
      }
    }),
  );
  expect(acquired).toBeGreaterThan(20);
  await waitUntil(
    async () => {
      const left = await childrenOf(server.address, '/locks');
      return !left.some((name) => name.startsWith(':tidy-'));
    },
    // Long before orphans are looked for.
    { what: 'all nodes to be tidied away', timeoutMs: 2_000 },
  );
});

test('what a killed process left is tidied away by another', async () => {
  await using lab = new Lab();
  // Never tidies by itself.
  const careless = lab.locks(server, { idleTtlMs: 1_000_000 });
  await (await careless.lock('orphaned').acquire()).release();
  expect(await childrenOf(server.address, '/locks')).toContain(':orphaned');
  const careful = lab.locks(server, { idleTtlMs: 20 });
  await (await careful.lock('anything').acquire()).release();
  await waitUntil(async () => !(await childrenOf(server.address, '/locks')).includes(':orphaned'), {
    what: 'the node to be gone',
  });
  expect(await childrenOf(server.address, parentOf('orphaned'))).toEqual([]);
});
