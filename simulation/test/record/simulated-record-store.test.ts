import { Buffer } from 'node:buffer';
import type { RecordWritten, StoredRecord } from '@locks/record-protocol';
import { expect, test } from 'vitest';
import { SeededRandom } from '../../src/kernel/seeded-random.ts';
import { World } from '../../src/kernel/world.ts';
import { ConnectionLost, Link, type NetworkOptions } from '../../src/network/link.ts';
import { SimulatedProcess } from '../../src/process/simulated-process.ts';
import type { RecordPlan } from '../../src/record/record-plan.ts';
import { RecordServer, ServerFailure } from '../../src/record/record-server.ts';
import { RequestAborted, SimulatedRecordStore } from '../../src/record/simulated-record-store.ts';

const NETWORK: NetworkOptions = {
  latencyMs: 1,
  ordered: false,
  slow: 0,
  slowMs: 100,
  lostRequests: 0,
  lostReplies: 0,
  resent: 0,
  lostPushes: 0,
};
const PLAN: RecordPlan = {
  clock: undefined,
  watches: false,
  tellsWhom: 'nothing',
  vainPushes: 0,
  lists: false,
  conflictsTell: false,
  versions: 'number',
  stale: 0,
  staleMs: 100,
  failed: 0,
  deletesIdleAfterMs: Infinity,
  retries: 0,
  endsAtAbort: false,
  minPollMs: 2,
  waiterTtlMs: 1_000,
};

interface Lab {
  readonly world: World;
  readonly server: RecordServer;
  /** The store as one more process has it. */
  open(): { readonly store: SimulatedRecordStore; readonly process: SimulatedProcess; readonly link: Link };
  run(...work: Promise<unknown>[]): Promise<void>;
}

function lab(plan: Partial<RecordPlan> = {}, network: Partial<NetworkOptions> = {}, seed = 1): Lab {
  const world = new World(seed, false);
  const record = { ...PLAN, ...plan };
  const server = new RecordServer(world, {
    plan: record,
    drift: 0.005,
    faultsEndAt: Infinity,
    written() {},
  });
  let opened = 0;
  return {
    world,
    server,
    open() {
      opened += 1;
      const random = world.random.fork(opened);
      const options = { name: `p${opened}`, drift: 0, wallOffset: 0, timerLatenessMs: 0 };
      const process = new SimulatedProcess(world, random, options);
      const node = { name: 'record', isAway: false };
      const link = new Link(world, process, node, new SeededRandom(opened), { ...NETWORK, ...network });
      const carriedOut = (): void => {};
      const store = new SimulatedRecordStore({
        process,
        link,
        server,
        plan: record,
        maxPollMs: 100,
        carriedOut,
      });
      return { store, process, link };
    },
    async run(...work) {
      let isOver = false;
      const all = Promise.all(work).finally(() => {
        isOver = true;
      });
      await Promise.all([
        world.run(
          () => isOver,
          () => {},
        ),
        all,
      ]);
      expect(world.violations).toEqual([]);
    },
  };
}

const within = (timeoutMs: number) => ({ timeoutMs, signal: new AbortController().signal });
const bytes = (text: string): Uint8Array => Buffer.from(text);
const textOf = (record: StoredRecord | undefined): string =>
  record === undefined ? '' : Buffer.from(record.value).toString();

/** Adds one to a counter, in whose value stands who wrote it last. */
async function increment(store: SimulatedRecordStore, writer: string): Promise<void> {
  let own: string | undefined;
  for (let tries = 0; ; tries += 1) {
    try {
      const { records } = await store.read(['counter'], within(1_000));
      const [record] = records;
      const [count = '0', ...by] = textOf(record).split(' ');
      if (own !== undefined && by.includes(own)) return;
      own ??= `${writer}.${tries}`;
      const value = bytes([Number(count) + 1, ...by, own].join(' '));
      const written = await store.write(
        { key: 'counter', value, ifVersion: record?.version, isIdle: false },
        within(1_000),
      );
      if (written.status === 'written') return;
    } catch (error) {
      if (!store.isRetryable(error)) throw error;
    }
  }
}

test.each([
  ['lost answers', {}, { lostReplies: 0.3, lostRequests: 0.1 }],
  ['lost answers, and a client that repeats', { retries: 2 }, { lostReplies: 0.3 }],
  ['requests that arrive twice', {}, { resent: 0.5 }],
  ['late requests', {}, { slow: 0.4 }],
  ['stale reads', { stale: 0.5 }, {}],
  ['failures that may have written', { failed: 0.4 }, {}],
])('a loop of compare and swap counts right, with %s', async (_, plan, network) => {
  const { server, open, run } = lab(plan, network);
  await run(
    ...Array.from({ length: 3 }, async () => {
      const { store, process } = open();
      for (let done = 0; done < 10; done += 1) await increment(store, `${process.name}-${done}`);
    }),
  );
  expect(textOf(server.present('counter')).split(' ')[0]).toBe('30');
});

test('a write that the client repeats by itself comes back as a conflict, although it took place', async () => {
  const { server, open, run } = lab({ conflictsTell: true }, { resent: 1 });
  const { store } = open();
  const statuses = new Set<RecordWritten['status']>();
  await run(
    (async () => {
      for (let count = 0; count < 20; count += 1) {
        const write = { key: `k${count}`, value: bytes('x'), ifVersion: undefined, isIdle: false };
        const written = await store.write(write, within(9_000));
        expect(textOf(server.present(write.key))).toBe('x');
        statuses.add(written.status);
        if (written.status === 'conflict') expect(written.present).toEqual(server.present(write.key));
      }
    })(),
  );
  // The first copy comes first in half of the cases.
  expect(statuses).toEqual(new Set(['conflict', 'written']));
});

test('a conflict tells what is there only where the store does', async () => {
  for (const conflictsTell of [true, false]) {
    const { open, run } = lab({ conflictsTell });
    const { store } = open();
    const write = (ifVersion: number) =>
      store.write({ key: 'a', value: undefined, ifVersion, isIdle: true }, within(100));
    await run(
      (async () => {
        const conflict = { status: 'conflict' };
        expect(await write(7)).toEqual(conflictsTell ? { ...conflict, present: 'absent' } : conflict);
      })(),
    );
  }
});

test('what is read was there, not longer ago than is allowed', async () => {
  const { world, open, run } = lab({ stale: 0.5, staleMs: 50 });
  const { store, process } = open();
  const written: number[] = [];
  let stale = 0;
  await run(
    (async () => {
      let ifVersion: StoredRecord['version'] | undefined;
      for (let count = 0; count < 100; count += 1) {
        const write = { key: 'a', value: bytes(String(count)), ifVersion, isIdle: false };
        const done = await store.write(write, within(100));
        if (done.status === 'written') ifVersion = done.version;
        written.push(world.now);
        await process.sleep(5);
        const { records } = await store.read(['a'], within(100));
        const seen = Number(textOf(records[0]) || '-1');
        if (seen < count) stale += 1;
        // The next one was written within that time, and two messages.
        const overwrittenAt = written[seen + 1] ?? world.now;
        expect(world.now - overwrittenAt).toBeLessThan(50 + 4);
      }
    })(),
  );
  expect(stale).toBeGreaterThan(10);
});

test.each([
  { stepMs: 1_000, skewMs: 0, isInWrites: false, by: 'reads' },
  { stepMs: 1, skewMs: 500, isInWrites: true, by: 'reads and writes' },
  { stepMs: 1, skewMs: 500, isInWrites: false, by: 'an answer of its own' },
] as const)(
  'the time of the store has a step of $stepMs ms and servers that are $skewMs ms apart, told by $by',
  async (row) => {
    const { stepMs, skewMs, isInWrites, by } = row;
    const { world, open, run } = lab({ clock: { stepMs, skewMs, isInWrites } });
    const { store, process } = open();
    const times: number[] = [];
    await run(
      (async () => {
        for (let reads = 0; reads < 50; reads += 1) {
          const read = await store.read(['a'], within(100));
          if (by === 'an answer of its own') expect(read).not.toHaveProperty('now');
          const now = (by === 'an answer of its own' ? await store.askTime?.(within(100)) : read.now) ?? 0;
          const trueNow = 1_790_000_000_000 + world.now * 1.005;
          expect(now % stepMs).toBe(0);
          expect(now).toBeLessThanOrEqual(trueNow + skewMs / 2);
          expect(now).toBeGreaterThan(trueNow - skewMs / 2 - stepMs - 4);
          times.push(now);
          await process.sleep(40);
        }
        const write = { key: 'a', value: bytes('x'), ifVersion: undefined, isIdle: false };
        expect('now' in (await store.write(write, within(100)))).toBe(isInWrites);
      })(),
    );
    expect(new Set(times).size).toBeGreaterThan(1);
  },
);

test('a watcher is told of a write of another process, also after its connection broke', async () => {
  const { open, run } = lab({ watches: true });
  const [one, two] = [open(), open()];
  let told = 0;
  await run(
    (async () => {
      const stop = one.store.watch?.(
        'a',
        () => {
          told += 1;
        },
        'me',
      );
      await two.process.sleep(20);
      one.link.reset();
      await two.process.sleep(20);
      const before = told;
      await increment(two.store, 'x');
      await two.store.write(
        { key: 'a', value: bytes('1'), ifVersion: undefined, isIdle: false },
        within(100),
      );
      await two.process.sleep(20);
      expect(told).toBeGreaterThan(before);
      stop?.();
      const after = told;
      await two.store.write({ key: 'a', value: bytes('2'), ifVersion: 2, isIdle: false }, within(100));
      await two.process.sleep(20);
      expect(told).toBe(after);
    })(),
  );
});

test('a failure of the server may have written, or not', async () => {
  const { server, open, run } = lab({ failed: 1 });
  const { store } = open();
  let written = 0;
  await run(
    (async () => {
      for (let count = 0; count < 40; count += 1) {
        const write = { key: `k${count}`, value: bytes('x'), ifVersion: undefined, isIdle: false };
        await expect(store.write(write, within(100))).rejects.toBeInstanceOf(ServerFailure);
        if (server.present(`k${count}`) !== undefined) written += 1;
      }
    })(),
  );
  expect(written).toBeGreaterThan(5);
  expect(written).toBeLessThan(35);
});

test('a record that is not in use is deleted after some time', async () => {
  const { server, open, run } = lab({ deletesIdleAfterMs: 1_000 });
  const { store, process } = open();
  const write = (key: string, isIdle: boolean) =>
    store.write({ key, value: bytes('x'), ifVersion: undefined, isIdle }, within(100));
  await run(
    (async () => {
      await Promise.all([write('in use', false), write('idle', true)]);
      await process.sleep(900);
      await store.read(['in use', 'idle'], within(100));
      expect(server.present('idle')).toBeDefined();
      await process.sleep(200);
      const { records } = await store.read(['in use', 'idle'], within(100));
      expect(records.map(textOf)).toEqual(['x', '']);
    })(),
  );
});

test('a request that was given up is carried out later all the same', async () => {
  const { server, open, run } = lab({ endsAtAbort: true }, { slow: 1, slowMs: 500 });
  const { store, process } = open();
  await run(
    (async () => {
      const abort = new AbortController();
      const write = { key: 'a', value: bytes('x'), ifVersion: undefined, isIdle: false };
      const writing = store.write(write, { timeoutMs: 1_000, signal: abort.signal });
      abort.abort();
      await expect(writing).rejects.toBeInstanceOf(RequestAborted);
      expect(server.present('a')).toBeUndefined();
      await process.sleep(1_100);
      expect(textOf(server.present('a'))).toBe('x');
    })(),
  );
});

test('a store lists the records below a prefix, and what broke on the way may be asked again', async () => {
  const { open, run } = lab({ lists: true });
  const { store, link } = open();
  await run(
    (async () => {
      for (const key of ['a/1', 'a/2', 'b/1'])
        await store.write({ key, value: bytes(key), ifVersion: undefined, isIdle: false }, within(100));
      const listed: string[] = [];
      for await (const record of store.list?.('a/', within(100)) ?? []) listed.push(textOf(record));
      expect(listed.sort()).toEqual(['a/1', 'a/2']);
      const reading = store.read(['a/1'], within(100));
      link.reset();
      const error: unknown = await reading.catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ConnectionLost);
      expect(store.isRetryable(error)).toBe(true);
    })(),
  );
});
