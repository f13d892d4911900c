import type { Grant, LockBackend } from '@locks/core/backend';
import { expect, it } from 'vitest';
import { acquire, call, callFor, open, request, sleep, take, until } from './fixture.ts';
import { MemoryStore, type MemoryStoreOptions, Records } from './memory-records.ts';

const CROWD = 20;
const pace = { waiterTtlMs: 600 };

interface Process {
  readonly store: MemoryStore;
  readonly backend: LockBackend;
  readonly turn: Promise<Grant | undefined>;
}

/** So many processes that wait for a name one behind the other. */
async function queueOf(
  records: Records,
  processes: number,
  options: MemoryStoreOptions = {},
): Promise<Process[]> {
  const queue: Process[] = [];
  for (let index = 0; index < processes; index += 1) {
    const store = new MemoryStore(records, { pace, ...options });
    const backend = open(store);
    const waiting = request('a', { ttlMs: 60_000 });
    await backend.attempt(waiting, true, call);
    const turn = acquire(backend, waiting, callFor(30_000)).catch(() => undefined);
    queue.push({ store, backend, turn });
  }
  return queue;
}

/** A process dies: nothing that it sends arrives any more, and nothing arrives there. */
function kill({ store }: Process): void {
  store.instead = () => {
    throw new Error('dead');
  };
  store.insteadOfPush = () => undefined;
  store.beforeRead = () => {
    throw new Error('dead');
  };
}

const heartbeatsRead = ({ store }: Process): number =>
  store.keysRead.filter((key) => key.includes('client/')).length;

it('who is far behind reads no heartbeats, and who comes soon those of the few ahead, while the lock is held', async () => {
  const records = new Records();
  await take(open(new MemoryStore(records)), request('a', { ttlMs: 60_000 }));
  const queue = await queueOf(records, CROWD);
  await sleep(1_500);
  const reads = queue.map(heartbeatsRead);
  expect(reads.slice(4)).toEqual(Array.from({ length: CROWD - 4 }, () => 0));
  // Each of those before it once in a fourth of the time after which it is dead.
  expect(Math.max(...reads)).toBeGreaterThan(0);
  expect(Math.max(...reads)).toBeLessThan(3 * 14);
});

it.each([3, 24])('a row of %i dead processes at the head is passed over', async (dead) => {
  const records = new Records();
  const holder = open(new MemoryStore(records, { pace }));
  const grant = await take(holder, request('a', { ttlMs: 60_000 }));
  const queue = await queueOf(records, dead + 2);
  for (const process of queue.slice(0, dead)) kill(process);
  let newAtOnce = 0;
  for (const { store } of queue.slice(dead)) {
    const seen = new Set<string>();
    store.beforeRead = (keys) => {
      const before = seen.size;
      for (const key of keys) if (key.includes('client/')) seen.add(key);
      newAtOnce = Math.max(newAtOnce, seen.size - before);
    };
  }
  await holder.release(grant, call);
  // On a machine that stands still the first of the two that live may be late itself.
  expect(await Promise.race(queue.slice(dead).map(({ turn }) => turn))).toBeDefined();
  // Four at a time would take six times as long as the first four.
  expect(newAtOnce).toBeGreaterThanOrEqual(Math.min(dead, 6));
});

it('a dead waiter far behind takes no place in a queue with a limit', async () => {
  const records = new Records();
  await take(open(new MemoryStore(records)), request('a', { ttlMs: 60_000 }));
  const queue = await queueOf(records, 8);
  kill(queue[6] as Process);
  const newcomer = open(new MemoryStore(records, { pace }));
  const limited = request('a', { maxWaiters: 8 });
  const first = await newcomer.attempt(limited, true, call);
  expect(first.status).toBe('full');
  await until(async () => (await newcomer.attempt(limited, true, call)).status === 'contended', 3_000);
});

it('a process that was found dead, goes on and waits again keeps its place', async () => {
  const records = new Records();
  const holder = open(new MemoryStore(records, { pace }));
  const grant = await take(holder, request('a', { ttlMs: 60_000 }));
  const [stalled] = (await queueOf(records, 2)) as [Process];
  let goOn = (): void => {};
  const goesOn = new Promise<void>((resolve) => (goOn = resolve));
  stalled.store.instead = async ({ key }, apply) => {
    if (key.includes('client/')) await goesOn;
    return apply();
  };
  await until(async () => (await holder.inspect('a', call)).waiters.length === 1);
  goOn();
  const again = request('a', { ttlMs: 60_000 });
  expect((await stalled.backend.attempt(again, true, call)).status).toBe('contended');
  // Heartbeats are read no more often than so.
  await sleep(pace.waiterTtlMs / 4);
  await holder.release(grant, call);
  // Before any of them has looked.
  expect(records.byKey.get('locks/lock/a')?.value.toString()).toContain(again.acquisitionId);
});

it('a try gets a lock that is free, and that only dead processes wait for', async () => {
  const records = new Records();
  const holder = open(new MemoryStore(records, { pace }));
  const grant = await take(holder, request('a', { ttlMs: 60_000 }));
  const queue = await queueOf(records, 6);
  for (const process of queue) kill(process);
  await holder.release(grant, call);
  const newcomer = open(new MemoryStore(records, { pace }));
  const tried = request('a');
  await until(async () => (await newcomer.attempt(tried, false, call)).status === 'granted', 4_000);
});

/** Each request takes some milliseconds, so that those of a crowd meet. */
function slowly(store: MemoryStore): MemoryStore {
  store.instead = async (_, apply) => {
    await sleep(2);
    const written = apply();
    await sleep(2);
    return written;
  };
  return store;
}

it('newcomers that collide make way for the holder, and for one another', async () => {
  const records = new Records();
  const store = slowly(new MemoryStore(records));
  const holder = open(store);
  const crowd = Array.from({ length: 60 }, () => slowly(new MemoryStore(records)));
  const newcomers = crowd.map((each) => open(each));
  const grant = await take(holder, request('a', { ttlMs: 60_000 }));
  const all = newcomers.map(async (backend) => {
    const given = await acquire(backend, request('a', { ttlMs: 60_000 }), callFor(30_000));
    await backend.release(given, call);
  });
  await sleep(8);
  await holder.release(grant, callFor(5_000));
  expect(store.counts.conflict).toBeLessThan(12);
  await Promise.all(all);
  const conflicts = crowd.reduce((sum, { counts }) => sum + counts.conflict, 0);
  expect(conflicts / crowd.length).toBeLessThan(12);
});

it.each([
  ['record', [0, 0, 0, 0, 0, 0]],
  ['whom', [1, 0, 0, 0, 0, 0]],
] as const)(
  'a write that frees calls the process of the next waiter, with the %s; all others look at nothing',
  async (pushes, reads) => {
    const records = new Records();
    const holder = open(new MemoryStore(records, { pace, pushes }));
    const grant = await take(holder, request('a', { ttlMs: 60_000 }));
    const queue = await queueOf(records, 6, { pushes });
    // Until the quick polls of the newcomers are over.
    await sleep(400);
    const read = () => queue.map(({ store }) => store.keysRead.filter((key) => key.includes('lock/')).length);
    const before = read();
    const startedAt = performance.now();
    await holder.release(grant, call);
    expect(await queue[0]?.turn).toBeDefined();
    expect(performance.now() - startedAt).toBeLessThan(150);
    expect(read().map((count, index) => count - (before[index] as number))).toEqual(reads);
  },
);

it('a call that is lost costs a slow poll, and no waiter', async () => {
  const records = new Records();
  const options = { pushes: 'whom' } as const;
  const holder = open(new MemoryStore(records, { pace, ...options }));
  const grant = await take(holder, request('a', { ttlMs: 60_000 }));
  const queue = await queueOf(records, 5, options);
  for (const { store } of queue) store.insteadOfPush = () => undefined;
  await sleep(400);
  await holder.release(grant, call);
  for (const { backend, turn } of queue) {
    const startedAt = performance.now();
    const given = await turn;
    expect(given).toBeDefined();
    expect(performance.now() - startedAt).toBeLessThan(2_500);
    await backend.release(given as Grant, call);
  }
});

it('a call that comes while a write of this process is under way is not forgotten', async () => {
  const records = new Records();
  const options = { pushes: 'whom', pace: { waiterTtlMs: 60_000, maxPollMs: 60_000 } } as const;
  const holder = open(new MemoryStore(records, options));
  const grant = await take(holder, request('a', { ttlMs: 60_000 }));
  const store = new MemoryStore(records, options);
  const backend = open(store);
  const waiting = request('a', { ttlMs: 60_000 });
  await backend.attempt(waiting, true, call);
  const turn = acquire(backend, waiting, callFor(10_000));
  // The pauses between two polls are long by now.
  await sleep(3_000);
  let goOn = (): void => {};
  const underWay = new Promise<void>((resolve) => (goOn = resolve));
  store.instead = async ({ key }, apply) => {
    const written = apply();
    if (key.includes('lock/')) await underWay;
    return written;
  };
  // One more waiter of this process is written, and the answer is on its way when the holder releases.
  const versionNow = () => records.byKey.get('locks/lock/a')?.version;
  const before = versionNow();
  const second = backend.attempt(request('a'), true, call);
  await until(() => versionNow() !== before);
  await holder.release(grant, call);
  // The call of the release has come.
  await new Promise(setImmediate);
  store.instead = undefined;
  const readsNow = () => store.keysRead.filter((key) => key.includes('lock/')).length;
  const reads = readsNow();
  goOn();
  await second;
  // Sooner than the next poll.
  await sleep(40);
  expect(readsNow()).toBeGreaterThan(reads);
  expect(await turn).toBeDefined();
});

const locksRead = ({ keysRead }: MemoryStore): number =>
  keysRead.filter((key) => key.includes('lock/')).length;

it('who enters again right after its release is in the queue by one write, and reads nothing', async () => {
  const records = new Records();
  const store = new MemoryStore(records, { pace });
  const holder = open(store);
  const grant = await take(holder, request('a', { ttlMs: 60_000 }));
  // The next one polls later than the test lasts.
  await queueOf(records, 1, { pace: { waiterTtlMs: 60_000, minPollMs: 20_000, maxPollMs: 20_000 } });
  await holder.release(grant, call);
  const before = { ...store.counts };
  expect((await holder.attempt(request('a'), true, call)).status).toBe('contended');
  // Its first heartbeat is the other write.
  expect(store.counts).toEqual({ ...before, written: before.written + 2 });
});

it('who has come to the queue knows its place by the write, and needs no poll', async () => {
  const records = new Records();
  const options = { pushes: 'whom', pace } as const;
  await take(open(new MemoryStore(records, options)), request('a', { ttlMs: 60_000 }));
  const queue = await queueOf(records, 6, options);
  // Each has attempted a second time by then.
  await sleep(100);
  const before = queue.map(({ store }) => locksRead(store));
  await sleep(400);
  const polls = queue.map(({ store }, index) => locksRead(store) - (before[index] as number));
  expect(polls.slice(1)).toEqual([0, 0, 0, 0, 0]);
});

it('in the back of a crowd that stands still heartbeats are seldom, and say so', async () => {
  const records = new Records();
  const short = { pace: { waiterTtlMs: 200 } };
  await take(open(new MemoryStore(records, short)), request('a', { ttlMs: 60_000 }));
  const queue = await queueOf(records, 14, short);
  const before = queue.map(({ store }) => store.counts.written);
  const newcomer = open(new MemoryStore(records, short));
  const limited = request('a', { maxWaiters: 14 });
  const startedAt = performance.now();
  while (performance.now() - startedAt < 3_000) {
    expect((await newcomer.attempt(limited, true, call)).status).toBe('full');
    await sleep(10);
  }
  const beats = queue.map(({ store }, index) => store.counts.written - (before[index] as number));
  expect(beats[13] as number).toBeLessThan((beats[0] as number) / 2);
  // A dead one is found out too, later.
  kill(queue[13] as Process);
  await until(async () => (await newcomer.attempt(limited, true, call)).status === 'contended', 3_000);
});

it('a head that could enter, and has entered, is not looked at', async () => {
  const records = new Records();
  const holder = open(new MemoryStore(records, { pace }));
  const grant = await take(holder, request('a', { ttlMs: 60_000 }));
  const slow = { waiterTtlMs: 60_000, minPollMs: 20_000, maxPollMs: 20_000 };
  const head = open(new MemoryStore(records, { pace: slow }));
  const first = request('a', { ttlMs: 60_000 });
  await head.attempt(first, true, call);
  await open(new MemoryStore(records, { pace: slow })).attempt(request('a'), true, call);
  const [behind] = (await queueOf(records, 1, { pace: { ...pace, minPollMs: 200, maxPollMs: 600 } })) as [
    Process,
  ];
  await holder.release(grant, call);
  const isFree = locksRead(behind.store);
  await until(() => locksRead(behind.store) > isFree, 3_000);
  await sleep(100);
  expect((await head.attempt(first, true, call)).status).toBe('granted');
  const [reads, beats] = [locksRead(behind.store), heartbeatsRead(behind)];
  await until(() => locksRead(behind.store) > reads, 3_000);
  expect(heartbeatsRead(behind)).toBe(beats);
});

it('who is far behind does not poll while pushes tell that others write', async () => {
  const records = new Records();
  const options = { pushes: 'whom', pace: { waiterTtlMs: 60_000, maxPollMs: 100 } } as const;
  await take(open(new MemoryStore(records, options)), request('a', { ttlMs: 60_000 }));
  const queue = await queueOf(records, 8, options);
  const { store } = queue[7] as Process;
  const other = open(new MemoryStore(records, options));
  const write = async (): Promise<void> => {
    const newcomer = request('a');
    await other.attempt(newcomer, true, call);
    await other.abandon(newcomer, call);
  };
  // Its loop has attempted once more, and waits.
  await until(() => locksRead(store) === 2);
  await write();
  const before = locksRead(store);
  for (let writes = 0; writes < 16; writes += 1) {
    await write();
    await sleep(40);
  }
  expect(locksRead(store)).toBe(before);
  await until(() => locksRead(store) > before, 2_000);
});
