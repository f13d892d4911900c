import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { LockBackend } from '@locks/core/backend';
import type { Harness } from '@locks/core/conformance';
import { waitUntil } from '@locks/test-servers';
import { type WebLocks, webLocks } from '@locks/web-locks';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/** Harnesses of the conformance suite: at least one of each backend. */
const STORES = process.env['LOCKS_WEB_LOCKS_STORES']?.split(',') ?? [
  'memory',
  'sqlite',
  'redis-ioredis',
  'redis-node',
  'redis-ioredis-cluster',
  'postgres-lease',
  'postgres-advisory',
  'mysql',
  'etcd',
  'zookeeper',
  'quorum-memory',
];
/**
 * The stores on which a waiter whose hand-off is stolen before it hears of it keeps its position in the queue. Redis is among
 * them here, where the reply to the release reports the hand-off.
 */
const KEEPS_POSITION: readonly string[] = [
  'memory',
  'sqlite',
  'redis-ioredis',
  'redis-node',
  'redis-ioredis-cluster',
  'postgres-lease',
  'mysql',
  'etcd',
];
/** The number of requests in one turn. */
const MANY = 60;
const numbers = Array.from({ length: MANY }, (_, number) => number);

interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

function gate(): Gate {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

/** Holds a lock until the gate is opened; resolves when it is held. */
async function hold(locks: WebLocks, name: string, mode: 'exclusive' | 'shared' = 'exclusive') {
  const entered = gate();
  const left = gate();
  const requested = locks.request(name, { mode }, () => {
    entered.open();
    return left.opened;
  });
  const outcome = outcomeOf(requested);
  await Promise.race([entered.opened, requested]);
  return { release: left.open, outcome };
}

/** `done`, or the name of the error. */
async function outcomeOf(requested: Promise<unknown>): Promise<string> {
  try {
    await requested;
    return 'done';
  } catch (error) {
    return error instanceof Error ? error.name : String(error);
  }
}

const isTaken = (locks: WebLocks, name: string): Promise<boolean> =>
  locks.request(name, { ifAvailable: true }, (lock) => lock === null);

describe.each(STORES)('the order of web locks on %s', { timeout: 60_000 }, (kind) => {
  let teardown: (() => Promise<void>) | undefined;
  let one: WebLocks;
  let other: WebLocks;
  let isOneStep: boolean;
  let names = 0;
  const fresh = (): string => `${kind} ${(names += 1)}`;

  beforeAll(async () => {
    const { default: harness } = (await import(`../src/harnesses/${kind}.ts`)) as { default: Harness };
    const started = await harness.setup?.();
    Object.assign(process.env, started?.env);
    teardown = started?.teardown;
    const backend: LockBackend = await harness.createBackend();
    isOneStep = backend.capabilities.features.includes('steal');
    one = webLocks(backend);
    other = webLocks(await harness.createBackend());
  });
  afterAll(async () => {
    await Promise.all([one?.close(), other?.close()]);
    await teardown?.();
  });

  it('a request that the callback made comes before the release of its lock', async () => {
    for (let round = 0; round < 30; round += 1) {
      const name = fresh();
      let taken: Promise<boolean> | undefined;
      await one.request(name, () => {
        taken = isTaken(one, name);
      });
      expect(await taken).toBe(true);
      // After that release the next request finds the lock free.
      expect(await isTaken(one, name)).toBe(false);
    }
  });

  it('the next request enters behind the requests of the holder before it', async () => {
    for (let round = 0; round < 15; round += 1) {
      const [first, second] = [fresh(), fresh()];
      const left = gate();
      let next: Promise<boolean> | undefined;
      let asked: Promise<void> | undefined;
      await one.request(first, async () => {
        next = other.request(first, () => isTaken(other, second));
        await sleep(round);
        asked = one.request(second, () => left.opened);
      });
      expect(await next).toBe(true);
      left.open();
      await asked;
    }
  });

  it('requests for one name are served in their order', async () => {
    const name = fresh();
    const held = await hold(other, name);
    const order: number[] = [];
    const all = numbers.map((number) => one.request(name, () => void order.push(number)));
    held.release();
    await Promise.all(all);
    expect(order).toEqual(numbers);
  });

  it('readers that are granted together are called in the order of their requests', async () => {
    for (let round = 0; round < 3; round += 1) {
      const name = fresh();
      const held = await hold(round === 0 ? one : other, name);
      const order: number[] = [];
      const all = numbers.map((number) =>
        one.request(name, { mode: 'shared' }, () => void order.push(number)),
      );
      await sleep(round * 50);
      held.release();
      await Promise.all(all);
      expect(order).toEqual(numbers);
    }
  });

  it('requests for distinct names are served in their order, and others see them so', async () => {
    for (let round = 0; round < 5; round += 1) {
      const asked = numbers.map(() => fresh());
      const left = gate();
      const order: string[] = [];
      const [before, watched, after] = [asked.slice(0, 20), asked[20] as string, asked.slice(21)];
      const all = asked.map((name) =>
        one.request(name, () => {
          order.push(name);
          return left.opened;
        }),
      );
      await waitUntil(() => isTaken(other, watched), {
        what: 'the request for the watched name',
        everyMs: 1,
      });
      const taken = await Promise.all(before.map((name) => isTaken(other, name)));
      expect(taken).toEqual(before.map(() => true));
      left.open();
      await Promise.all(all);
      // The callback of the request that the other client tried may have come later.
      expect(order.filter((name) => name !== watched)).toEqual([...before, ...after]);
    }
  });

  it('releases of one turn and the requests after them keep their order', async () => {
    const asked = numbers.slice(0, 20).map(() => fresh());
    const held = await Promise.all(asked.map((name) => hold(one, name)));
    for (const { release } of held) release();
    // One turn later the releases are on their way.
    await sleep(0);
    expect(await Promise.all(asked.map((name) => isTaken(one, name)))).toEqual(asked.map(() => false));
    expect(await Promise.all(held.map(({ outcome }) => outcome))).toEqual(asked.map(() => 'done'));
  });

  it('requests that are aborted, at once or in the queue, leave the others in their order', async () => {
    const name = fresh();
    const held = await hold(other, name);
    const order: number[] = [];
    const aborters = numbers.map(() => new AbortController());
    const all = aborters.map(({ signal }, number) =>
      outcomeOf(one.request(name, { signal }, () => void order.push(number))),
    );
    for (const number of numbers) if (number % 3 === 0) aborters[number]?.abort('aborted');
    expect(await isTaken(one, name)).toBe(true);
    for (const number of numbers) if (number % 3 === 1) aborters[number]?.abort('aborted');
    held.release();
    expect(await Promise.all(all)).toEqual(numbers.map((number) => (number % 3 === 2 ? 'done' : 'aborted')));
    expect(order).toEqual(numbers.filter((number) => number % 3 === 2));
    expect(await isTaken(other, name)).toBe(false);
  });

  it('an abort comes after the requests that were made before it, and before those made after it', async () => {
    for (let round = 0; round < 5; round += 1) {
      const name = fresh();
      const reader = await hold(one, name, 'shared');
      const aborter = new AbortController();
      const writer = outcomeOf(one.request(name, { signal: aborter.signal }, () => {}));
      const isReadable = (): Promise<boolean> =>
        one.request(name, { mode: 'shared', ifAvailable: true }, (lock) => lock !== null);
      const before = isReadable();
      aborter.abort('aborted');
      const after = isReadable();
      expect([await before, await after, await writer]).toEqual([false, true, 'aborted']);
      reader.release();
      expect(await reader.outcome).toBe('done');
    }
  });

  it('steal: many waiters of one turn stay in their order', async () => {
    const name = fresh();
    const former = await hold(one, name);
    const order: (number | string)[] = [];
    const waiting = numbers.map((number) => one.request(name, () => void order.push(number)));
    // All requests are in the queue.
    await isTaken(one, name);
    const stolen = one.request(name, { steal: true }, () => void order.push('steal'));
    expect(await former.outcome).toBe('AbortError');
    await Promise.all([...waiting, stolen]);
    if (isOneStep) expect(order[0]).toBe('steal');
    expect(order.filter((entry) => entry !== 'steal')).toEqual(numbers);
  });

  it('steal: around a hand-off the waiters stay in order, and nobody is forgotten', async () => {
    for (let round = 0; round < 5; round += 1) {
      const name = fresh();
      const held = await hold(one, name);
      const order: (number | string)[] = [];
      const stolen: number[] = [];
      const waiting = numbers.slice(0, 10).map(async (number) => {
        const outcome = await outcomeOf(one.request(name, () => void order.push(number)));
        if (outcome !== 'done') stolen.push(number);
      });
      await isTaken(one, name);
      held.release();
      // The steal comes between the turn of the release and some turns after the hand-off.
      for (let wait = 0; wait < round; wait += 1) await nextTurn();
      await other.request(name, { steal: true }, () => void order.push('steal'));
      await Promise.all(waiting);
      const served = order.filter(
        (entry) => entry !== 'steal' && (KEEPS_POSITION.includes(kind) || entry !== 0),
      );
      expect(served).toEqual(served.toSorted((a, b) => Number(a) - Number(b)));
      for (const number of numbers.slice(0, 10)) {
        expect(order.includes(number) || stolen.includes(number)).toBe(true);
      }
    }
  });

  it('steal: of many steals of one turn each ends the one before, and the last one keeps the lock', async () => {
    const name = fresh();
    const held = await hold(other, name);
    const called: number[] = [];
    const left = gate();
    const steals = numbers.slice(0, 10).map((number) =>
      outcomeOf(
        one.request(name, { steal: true }, () => {
          called.push(number);
          return left.opened;
        }),
      ),
    );
    const last = steals.pop() as Promise<string>;
    expect(await Promise.all(steals)).toEqual(steals.map(() => 'AbortError'));
    await waitUntil(() => called.length === 10, { what: 'the callback of the last steal to be called' });
    expect(called).toEqual(numbers.slice(0, 10));
    expect(await isTaken(other, name)).toBe(true);
    left.open();
    expect(await last).toBe('done');
    held.release();
    expect(await held.outcome).toBe('AbortError');
  });
});
