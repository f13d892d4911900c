import { createLocks } from '@locks/core';
import type { Grant } from '@locks/core/backend';
import { expect, it } from 'vitest';
import { acquire, call, open, request, sleep, take, until } from './fixture.ts';
import { MemoryStore, Records } from './memory-records.ts';

it('an acquire and its release are two requests, the first time and later', async () => {
  const store = new MemoryStore(new Records());
  const backend = open(store);
  for (let round = 1; round <= 3; round += 1) {
    await backend.release(await take(backend, request('a')), call);
    // The first one reads for the time of the store.
    expect(store.counts).toMatchObject({ read: 1, written: 2 * round, conflict: 0 });
  }
});

it('a name that another process has used since costs one conflict, which has the record', async () => {
  const records = new Records();
  const store = new MemoryStore(records);
  const [here, there] = [open(store), open(new MemoryStore(records))];
  await here.release(await take(here, request('a')), call);
  await there.release(await take(there, request('a')), call);
  await here.release(await take(here, request('a')), call);
  expect(store.counts).toMatchObject({ read: 1, written: 4, conflict: 1 });
});

it('hand-offs inside a process are one write each', async () => {
  const store = new MemoryStore(new Records());
  const locks = createLocks(open(store));
  await Promise.all(
    Array.from({ length: 100 }, () =>
      locks.lock('a').run(() => new Promise<void>((resolve) => setImmediate(resolve))),
    ),
  );
  // Beside one write per release: those that gathered the waiters, and the first heartbeat.
  expect(store.counts.written).toBeLessThan(120);
  expect(store.counts.conflict).toBe(0);
  await locks.close();
});

it('polls once for all that wait, however many, and ever more seldom, while the holds are renewed', async () => {
  const records = new Records();
  const holder = open(new MemoryStore(records));
  const grants: Grant[] = [];
  for (const name of ['a', 'b', 'c']) grants.push(await take(holder, request(name, { ttlMs: 60_000 })));
  const store = new MemoryStore(records);
  const backend = open(store);
  const waiting = ['a', 'b', 'c'].flatMap((name) => Array.from({ length: 300 }, () => request(name)));
  const waits = waiting.map((wanted) => acquire(backend, wanted).catch(() => undefined));
  await until(async () => (await holder.inspect('c', call)).waiters.length === 300);
  await sleep(1_500);
  const before = store.counts.read;
  for (let renewals = 0; renewals < 4; renewals += 1) {
    await sleep(500);
    await holder.renew(
      grants.map((grant) => ({ grant, ttlMs: 60_000 })),
      call,
    );
  }
  // One read of three records each 800 ms at most.
  expect(store.counts.read - before).toBeLessThanOrEqual(4);
  await Promise.all(waiting.map((wanted) => backend.abandon(wanted, call)));
  await backend.close();
  await Promise.all(waits);
});

it('a process whose next hold ends looks at that moment', async () => {
  const records = new Records();
  await take(open(new MemoryStore(records)), request('a', { ttlMs: 1_000 }));
  const startedAt = performance.now();
  await acquire(open(new MemoryStore(records)), request('a'));
  expect(performance.now() - startedAt).toBeLessThan(1_250);
});
