import { createLocks } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { call, isContended, open, request, take } from './fixture.ts';
import { MemoryStore, Records } from './memory-records.ts';

const clock = { stepMs: 1, skewMs: 100 };
const TTL_MS = 5_000;
/** The ttl, twice the step, and the skew. */
const OVER_MS = TTL_MS + 2 + 100;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'Date'], now: 1_790_000_000_000 });
});

afterEach(() => {
  vi.useRealTimers();
});

/** The process waits. Another clock may be faster by a hundredth. */
function pass(ms: number): void {
  vi.advanceTimersByTime(Math.ceil(ms * 1.02));
}

/** A process on a store that tells its time only if it is asked. */
function asking(records: Records): { readonly store: MemoryStore; readonly backend: LockBackend } {
  const store = new MemoryStore(records, { clock, asked: () => Date.now() });
  return { store, backend: open(store) };
}

async function isFree(records: Records, resource: string): Promise<boolean> {
  return !(await isContended(asking(records).backend, resource));
}

describe('a store that tells its time only if it is asked', () => {
  it('gives the lock of a dead holder to a process that has just come, also the first hold of a name', async () => {
    const records = new Records();
    await take(asking(records).backend, request('a', { ttlMs: TTL_MS }));
    for (let passed = 0; passed < TTL_MS; passed += 1_000) {
      expect(await isFree(records, 'a')).toBe(false);
      vi.advanceTimersByTime(1_000);
    }
    pass(OVER_MS - TTL_MS);
    expect(await isFree(records, 'a')).toBe(true);
  });

  it('is asked once before the first write, and never again for acquires that nobody disturbs', async () => {
    const { store, backend } = asking(new Records());
    for (let round = 1; round <= 50; round += 1) {
      await backend.release(await take(backend, request('a')), call);
      vi.advanceTimersByTime(1_000);
      expect(store.counts).toEqual({ read: 0, written: 2 * round, conflict: 0, asked: 1 });
    }
  });

  it('is asked in the background when an end is written by a time that is a minute old', async () => {
    const records = new Records();
    const { store, backend } = asking(records);
    await backend.release(await take(backend, request('a')), call);
    vi.advanceTimersByTime(61_000);
    let answer = (): void => expect.fail('it was not asked');
    const asked = new Promise<void>((resolve) => {
      Object.assign(store, {
        askTime: () =>
          new Promise<number>((told) => {
            resolve();
            answer = () => told(Date.now());
          }),
      });
    });
    // Nobody waits for the answer.
    await take(backend, request('a'));
    await asked;
    answer();
  });

  it('is asked before a grant that would be dated by a time older than five minutes', async () => {
    const records = new Records();
    const { store, backend } = asking(records);
    await backend.release(await take(backend, request('b')), call);
    vi.advanceTimersByTime(24 * 3_600_000);
    await take(backend, request('a', { ttlMs: TTL_MS }));
    expect(store.counts.asked).toBe(2);
    pass(OVER_MS);
    expect(await isFree(records, 'a')).toBe(true);
  });

  it('is asked at most once a second for all names that others hold, and only where that can tell more', async () => {
    const records = new Records();
    const holder = asking(records);
    const names = ['a', 'b', 'c', 'd'];
    for (const name of names) await take(holder.backend, request(name, { ttlMs: TTL_MS }));
    const { store, backend } = asking(records);
    for (let passed = 0; passed < TTL_MS - 1_000; passed += 100) {
      for (const name of names) expect(await isContended(backend, name)).toBe(true);
      vi.advanceTimersByTime(100);
    }
    // The holds can not be over by any clock.
    expect(store.counts.asked).toBe(1);
    for (let passed = 0; passed < 1_000; passed += 100) {
      await Promise.all(names.map((name) => isContended(backend, name)));
      vi.advanceTimersByTime(100);
    }
    expect(store.counts.asked).toBeLessThanOrEqual(3);
  });

  it('is believed no more than it told, where its answer was long on the way', async () => {
    const records = new Records();
    // The answer takes two seconds: the time in it is from the beginning, or from the end.
    for (const readAt of ['beginning', 'end'] as const) {
      const asked = async (): Promise<number> => {
        const before = Date.now();
        vi.advanceTimersByTime(2_000);
        return readAt === 'beginning' ? before : Date.now();
      };
      const holder = open(new MemoryStore(records, { clock, asked }));
      await take(holder, request(readAt, { ttlMs: TTL_MS }));
      vi.advanceTimersByTime(TTL_MS - 1);
      expect(await isFree(records, readAt)).toBe(false);
    }
  });

  it('is asked again where the answer was lost, while the heartbeat of a waiter goes without it', async () => {
    const records = new Records();
    await take(asking(records).backend, request('a'));
    let failures = 1;
    const asked = async (): Promise<number> => {
      if ((failures -= 1) >= 0) throw new Error('cut off');
      return Date.now();
    };
    const waiting = open(new MemoryStore(records, { clock, asked }));
    expect(await waiting.attempt(request('a'), true, call)).toEqual({ status: 'contended' });
  });

  it('is asked by one request for all that begin at once', async () => {
    const { store, backend } = asking(new Records());
    await Promise.all(['a', 'b', 'c', 'd'].map((name) => take(backend, request(name))));
    expect(store.counts.asked).toBe(1);
  });
});

describe('a store that has a clock and tells no time', () => {
  it.each([
    ['in its answers', new MemoryStore(new Records(), { clock })],
    ['if it is asked', new MemoryStore(new Records(), { clock, asked: () => undefined })],
  ])(
    '%s, grants nothing, since no short-lived process would ever get the lock of a dead holder',
    async (_, store) => {
      const locks = createLocks(open(store));
      for (let round = 0; round < 2; round += 1)
        await expect(locks.lock('a').tryAcquire()).rejects.toMatchObject({
          code: 'LOCK_BACKEND',
          cause: { code: 'NO_TIME' },
          message: expect.stringContaining("expiry: 'observed'") as string,
        });
      expect(await locks.inspect('a')).toEqual({ name: 'a', holders: [], waiters: [] });
      await locks.close();
    },
  );
});

describe('the end of a hold', () => {
  it('is shown by a process that has just come where the store tells its time, and left out where it does not', async () => {
    const told = new Records();
    await take(asking(told).backend, request('a', { ttlMs: TTL_MS }));
    vi.advanceTimersByTime(2_000);
    const [shown] = (await asking(told).backend.inspect('a', call)).holders;
    expect(shown?.expiresInMs).toBeGreaterThan(3_000);
    expect(shown?.expiresInMs).toBeLessThan(3_300);
    const untold = new Records();
    const holder = open(new MemoryStore(untold));
    await take(holder, request('a', { ttlMs: TTL_MS }));
    const observer = open(new MemoryStore(untold));
    expect((await observer.inspect('a', call)).holders).not.toMatchObject([
      { expiresInMs: expect.anything() },
    ]);
    vi.advanceTimersByTime(1_000);
    for (const knowing of [holder, observer])
      expect((await knowing.inspect('a', call)).holders).toMatchObject([{ expiresInMs: TTL_MS - 1_000 }]);
  });
});
