import { createLocks } from '@locks/core';
import type { SlotEntry } from '@locks/core/backend';
import { startZookeeper, waitUntil, type ZooKeeperServer } from '@locks/test-servers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { zookeeperBackend, zookeeperSlots, zookeeperResults } from '../src/index.ts';

let server: ZooKeeperServer;
beforeAll(async () => {
  server = await startZookeeper();
});
afterAll(async () => {
  await server.stop();
});

const TOKEN = 2n ** 62n + 1n;
const entry = (token: bigint): SlotEntry => ({
  ...{ slot: `of ${token}`, state: 'done', token, label: 'é', at: 1_900_000_000_000 },
});

test('of many writers at once the one with the highest token is kept, and the ensemble tells its time', async () => {
  const path = '/of/writers';
  const stores = Array.from({ length: 8 }, () => zookeeperSlots(server.address, { path }));
  for (const job of ['a/%', '.', 'é']) {
    const written = await Promise.all(stores.map((slots, at) => slots.write(job, entry(TOKEN + BigInt(at)))));
    expect(written[7]).toBe(true);
    const { entry: kept, storeTime } = (await stores[0]?.read(job)) ?? {};
    expect(kept).toEqual(entry(TOKEN + 7n));
    // The server is on this machine.
    expect(Math.abs((storeTime ?? 0) - Date.now())).toBeLessThan(10_000);
    expect(await stores[1]?.write(job, entry(TOKEN))).toBe(false);
  }
});

test('slots are no locks, and their sessions end soon after a call', async () => {
  const path = '/beside';
  const slots = zookeeperSlots(server.address, { path });
  await slots.write('job', entry(1n));
  await zookeeperResults(server.address, { path }).set('key', 'x', 1n, 60_000);
  const locks = createLocks(zookeeperBackend(server.address, { path }));
  const lease = await locks.lock('once').acquire();
  const listed: string[] = [];
  for await (const { name } of locks.list()) listed.push(name);
  expect(listed).toEqual(['once']);
  await lease.release();
  await locks.close();
  await waitUntil(async () => !(await server.report('cons')).includes('sid='), {
    what: 'the end of the sessions',
  });
  // A session of its own is opened for the next call.
  expect((await slots.read('job')).entry).toEqual(entry(1n));
});
