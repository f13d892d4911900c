import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, type FencedLease, isLockError, type LockManager, type LockOptions } from '@locks/core';
import { OWN_LOCK } from '@locks/core/backend';
import { delegate, NoReply } from '@locks/core/conformance';
import { memoryBackend, memoryTestBackend, MemoryStore } from '@locks/memory';
import { describe, expect, it, vi } from 'vitest';
import { newestWins, type NewestWinsOptions } from '../src/index.ts';

type Locks = LockManager<FencedLease>;

/** The seat of the waiters for `a`. */
const SEAT = '@locks/newest:a';

function processes(count: number): Locks[] {
  const shared = new MemoryStore();
  return Array.from({ length: count }, () => createLocks(memoryBackend(shared)));
}

const closeAll = (all: readonly Locks[]) => Promise.all(all.map((locks) => locks.close()));
const codeOf = (error: unknown) => (isLockError(error) ? error.code : String(error));
const until = (condition: () => unknown) => vi.waitFor(condition, { timeout: 10_000, interval: 1 });
const waits = (locks: Locks, count: number) =>
  until(async () => expect((await locks.inspect('a')).waiters).toHaveLength(count));
const isFree = async (locks: Locks) => {
  expect(await locks.isLocked('a')).toBe(false);
  expect((await locks.inspect('a')).waiters).toEqual([]);
};

describe('within a process', () => {
  it('of those that wait the newest runs, the others end at once, and who works works on', async () => {
    const [locks] = processes(1) as [Locks];
    const ran: number[] = [];
    const call = (number: number, work?: Promise<void>) =>
      newestWins(locks, 'a', async (lease) => {
        ran.push(number);
        await work;
        lease.assertValid();
        return number;
      });
    let endWork = (): void => {};
    const first = call(0, new Promise((resolve) => (endWork = resolve)));
    await until(() => expect(ran).toEqual([0]));
    const calls = [1, 2, 3, 4].map((number) => call(number));
    const outcomes = await Promise.all(calls.slice(0, 3).map((each) => each.catch(codeOf)));
    expect(outcomes).toEqual(Array(3).fill('LOCK_SUPERSEDED'));
    expect(ran).toEqual([0]);
    endWork();
    expect(await first).toBe(0);
    expect(await calls[3]).toBe(4);
    expect(ran).toEqual([0, 4]);
    await isFree(locks);
    await locks.close();
  });

  it('a thousand calls run the first and the last', async () => {
    const [locks] = processes(1) as [Locks];
    const ran: number[] = [];
    const calls = Array.from({ length: 1_000 }, (_, number) =>
      newestWins(locks, 'a', async () => {
        ran.push(number);
        await sleep(30);
      }).catch(codeOf),
    );
    const outcomes = await Promise.all(calls);
    expect(ran.at(-1)).toBe(999);
    expect(ran.length).toBeLessThan(5);
    expect(outcomes.filter((code) => code === 'LOCK_SUPERSEDED')).toHaveLength(1_000 - ran.length);
    await isFree(locks);
    await locks.close();
  });

  it('each newer one ends the one before it at once, however long that one has waited', async () => {
    await using locks = createLocks(memoryBackend());
    const held = await locks.lock('a').acquire();
    let before = newestWins(locks, 'a', () => 0);
    await waits(locks, 1);
    for (const number of [1, 2, 3]) {
      const from = performance.now();
      const next = newestWins(locks, 'a', () => number);
      await expect(before).rejects.toMatchObject({ code: 'LOCK_SUPERSEDED' });
      expect(performance.now() - from).toBeLessThan(1_000);
      await waits(locks, 1);
      before = next;
    }
    await held.release();
    expect(await before).toBe(3);
  });

  it('who has the older seat has come before, also where it hears of it later', async () => {
    const backend = memoryBackend();
    let goOn = (): void => undefined;
    const secondIsSeated = new Promise<void>((resolve) => (goOn = resolve));
    let seats = 0;
    const late = delegate(backend, {
      async attempt(request, enqueue, call) {
        const answer = await backend.attempt(request, enqueue, call);
        if (request.resource !== SEAT) return answer;
        seats += 1;
        if (seats === 1) await secondIsSeated;
        else setTimeout(goOn, 20);
        return answer;
      },
    });
    await using locks = createLocks(late);
    const held = await locks.lock('a').acquire();
    const older = newestWins(locks, 'a', () => 'older');
    await until(() => expect(seats).toBe(1));
    const newer = newestWins(locks, 'a', () => 'newer');
    await expect(older).rejects.toMatchObject({ code: 'LOCK_SUPERSEDED' });
    await held.release();
    expect(await newer).toBe('newer');
  });

  it('does not work under a lock that ended while the store was asked for the seat', async () => {
    const backend = memoryBackend();
    const slow = delegate(backend, {
      async renew(items, call) {
        // This process stands still, so the lease of the lock is not renewed.
        if (items.some(({ grant }) => grant.request.resource === SEAT))
          for (const from = performance.now(); performance.now() < from + 120; );
        return backend.renew(items, call);
      },
    });
    await using locks = createLocks(slow);
    const work = vi.fn();
    const lost = newestWins(locks, 'a', work, { ttlMs: 50 });
    await expect(lost).rejects.toMatchObject({ code: 'LOCK_LOST', lockName: 'a' });
    expect(work).not.toHaveBeenCalled();
  });

  it('leaves the locks of the application alone, and takes every name', async () => {
    await using locks = createLocks(memoryBackend());
    const own = await locks.lock('a:newest').acquire();
    expect(await newestWins(locks, 'a', () => 1)).toBe(1);
    await own.renew();
    await own.release();
    expect(() => locks.lock(SEAT)).toThrow(expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }));
    // Names that differ in their last byte only.
    const long = ['x', 'y'].map((last) => `${'é'.repeat(255)}-${last}`);
    const held = await Promise.all(long.map((name) => locks.lock(name).acquire()));
    const calls = long.map((name) => newestWins(locks, name, () => name));
    await Promise.all(held.map((lease) => lease.release()));
    expect(await Promise.all(calls)).toEqual(long);
  });

  it('names and managers are apart', async () => {
    await using locks = createLocks(memoryBackend());
    await using other = createLocks(memoryBackend());
    const held = await locks.lock('a').acquire();
    const waiting = newestWins(locks, 'a', () => 'a');
    expect(await newestWins(locks, 'b', () => 'b')).toBe('b');
    expect(await newestWins(other, 'a', () => 'other')).toBe('other');
    await held.release();
    expect(await waiting).toBe('a');
  });
});

describe('over processes', () => {
  it('a superseded waiter whose turn comes first runs nothing, and passes the lock on', async () => {
    const [holder, older, newer] = processes(3) as [Locks, Locks, Locks];
    const held = await holder.lock('a').acquire();
    const work = vi.fn(() => 'older');
    const first = newestWins(older, 'a', work);
    await waits(holder, 1);
    const second = newestWins(newer, 'a', () => 'newer');
    await waits(holder, 2);
    await held.release();
    await expect(first).rejects.toMatchObject({ code: 'LOCK_SUPERSEDED', lockName: 'a' });
    expect(await second).toBe('newer');
    expect(work).not.toHaveBeenCalled();
    await isFree(holder);
    await closeAll([holder, older, newer]);
  });

  it('a superseded waiter learns it within four seconds, and leaves the queue', async () => {
    const [holder, older, newer] = processes(3) as [Locks, Locks, Locks];
    const held = await holder.lock('a').acquire();
    const first = newestWins(older, 'a', () => 'older');
    await waits(holder, 1);
    const from = performance.now();
    const second = newestWins(newer, 'a', () => 'newer');
    await expect(first).rejects.toMatchObject({ code: 'LOCK_SUPERSEDED' });
    expect(performance.now() - from).toBeLessThan(5_000);
    expect((await holder.inspect('a')).waiters).toHaveLength(1);
    await held.release();
    expect(await second).toBe('newer');
    await closeAll([holder, older, newer]);
  });

  it('no work begins after that of a newer call, and the last call always runs', async () => {
    const all = processes(4);
    for (let round = 0; round < 20; round += 1) {
      const ran: number[] = [];
      let inside = 0;
      const calls: Promise<unknown>[] = [];
      for (let number = 0; number < 25; number += 1) {
        const locks = all[Math.floor(Math.random() * all.length)] as Locks;
        const call = newestWins(locks, 'a', async () => {
          inside += 1;
          expect(inside).toBe(1);
          ran.push(number);
          await sleep(Math.random() * 3);
          inside -= 1;
        });
        calls.push(call.catch(codeOf));
        if (Math.random() < 0.5) await sleep(Math.random() * 2);
      }
      const outcomes = await Promise.all(calls);
      expect(ran).toEqual(ran.toSorted((one, other) => one - other));
      expect(ran.at(-1)).toBe(24);
      const others = outcomes.filter((_, number) => !ran.includes(number));
      expect(new Set(others)).toEqual(new Set(['LOCK_SUPERSEDED']));
    }
    await isFree(all[0] as Locks);
    await closeAll(all);
  });

  it('an older one whose turn comes after the work of the newest is superseded all the same', async () => {
    const store = new MemoryStore();
    const backend = memoryBackend(store);
    const newer = createLocks(memoryBackend(store));
    let goOn = (): void => undefined;
    const newestIsDone = new Promise<void>((resolve) => (goOn = resolve));
    let isSeated = false;
    const older = createLocks(
      delegate(backend, {
        async attempt(request, enqueue, call) {
          // It has its seat, and stands in the queue only when the newest has come, worked and gone.
          if (request.resource === 'a') {
            isSeated = true;
            await newestIsDone;
          }
          return backend.attempt(request, enqueue, call);
        },
      }),
    );
    const first = newestWins(older, 'a', () => 'older', { waitMs: 30_000 });
    await until(() => expect(isSeated).toBe(true));
    expect(await newestWins(newer, 'a', () => 'newer')).toBe('newer');
    goOn();
    await expect(first).rejects.toMatchObject({ code: 'LOCK_SUPERSEDED', lockName: 'a' });
    await Promise.all([older.close(), newer.close()]);
  });

  it('a seat that was stolen is free some seconds later, and one that was free at once', async () => {
    const [one, other] = processes(2) as [Locks, Locks];
    expect(await newestWins(one, 'a', () => 1)).toBe(1);
    expect(await one.isLocked(SEAT)).toBe(false);
    const held = await one.lock('a').acquire();
    const first = newestWins(one, 'a', () => 1);
    await waits(one, 1);
    const second = newestWins(other, 'a', () => 2);
    await waits(one, 2);
    await held.release();
    await expect(first).rejects.toMatchObject({ code: 'LOCK_SUPERSEDED' });
    expect(await second).toBe(2);
    expect(await one.isLocked(SEAT)).toBe(true);
    await until(async () => expect(await one.isLocked(SEAT)).toBe(false));
    await closeAll([one, other]);
  });

  it('works where a newer call takes the seat after the store has confirmed it, and before it is released', async () => {
    const store = new MemoryStore();
    const backend = memoryBackend(store);
    await using newerProcess = createLocks(memoryBackend(store));
    let newer: Promise<string> | undefined;
    const overtaken = delegate(backend, {
      async release(grant, call) {
        if (grant.request.resource === SEAT && newer === undefined) {
          newer = newestWins(newerProcess, 'a', () => 'newer');
          await waits(newerProcess, 1);
        }
        return backend.release(grant, call);
      },
    });
    await using locks = createLocks(overtaken);
    expect(await newestWins(locks, 'a', () => 'older')).toBe('older');
    expect(await newer).toBe('newer');
  });

  it('a seat that an operator released tells that nobody knows whether a newer call came', async () => {
    const [holder, waiter] = processes(2) as [Locks, Locks];
    const held = await holder.lock('a').acquire();
    const work = vi.fn();
    const call = newestWins(waiter, 'a', work);
    await waits(holder, 1);
    await holder.forceRelease(SEAT);
    await held.release();
    await expect(call).rejects.toMatchObject({
      code: 'LOCK_LOST',
      reason: 'force-released',
      lockName: SEAT,
    });
    expect(work).not.toHaveBeenCalled();
    await isFree(holder);
    await closeAll([holder, waiter]);
  });

  it('does not run where the store does not answer for the seat', async () => {
    const store = new MemoryStore();
    const backend = memoryBackend(store);
    const silent = delegate(backend, {
      renew: async (items, call) =>
        items.some(({ grant }) => grant.request.resource === SEAT)
          ? Promise.reject(new NoReply('renewal'))
          : backend.renew(items, call),
    });
    await using locks = createLocks(silent);
    const work = vi.fn();
    await expect(newestWins(locks, 'a', work)).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
    expect(work).not.toHaveBeenCalled();
    expect(await locks.isLocked('a')).toBe(false);
  });
});

it('a wait ends by waitMs and by the signal, and leaves nothing', async () => {
  const [locks] = processes(1) as [Locks];
  const held = await locks.lock('a').acquire();
  await expect(newestWins(locks, 'a', () => 1, { waitMs: 20 })).rejects.toMatchObject({
    code: 'LOCK_TIMEOUT',
  });
  const leaves = new AbortController();
  const call = newestWins(locks, 'a', () => 1, { signal: leaves.signal });
  await waits(locks, 1);
  leaves.abort(new Error('enough'));
  await expect(call).rejects.toThrow('enough');
  const signal = AbortSignal.abort(new Error('before'));
  await expect(newestWins(locks, 'a', () => 1, { signal })).rejects.toThrow('before');
  await held.release();
  await isFree(locks);
  expect(await newestWins(locks, 'a', () => 1)).toBe(1);
  await locks.close();
});

it('while the work runs, the signal aborts that of the work with its own reason; a newer call does not', async () => {
  const [locks] = processes(1) as [Locks];
  const leaves = new AbortController();
  let seen: AbortSignal | undefined;
  const works = newestWins(
    locks,
    'a',
    async ({ signal }) => {
      seen = signal;
      await once(signal, 'abort');
      return signal.reason as unknown;
    },
    { signal: leaves.signal },
  );
  await until(() => expect(seen).toBeDefined());
  const older = newestWins(locks, 'a', () => 'older').catch(codeOf);
  await waits(locks, 1);
  const newer = newestWins(locks, 'a', () => 'newer');
  expect(await older).toBe('LOCK_SUPERSEDED');
  expect(seen?.aborted).toBe(false);
  const reason = new Error('enough');
  leaves.abort(reason);
  expect(await works).toBe(reason);
  expect(await newer).toBe('newer');
  await isFree(locks);
  await locks.close();
});

it('a loss aborts the signal of the work with LOCK_LOST', async () => {
  await using locks = createLocks(memoryBackend());
  const lost = newestWins(
    locks,
    'a',
    async ({ signal }) => {
      await locks.forceRelease('a');
      await once(signal, 'abort');
      signal.throwIfAborted();
    },
    { ttlMs: 100, signal: new AbortController().signal },
  );
  await expect(lost).rejects.toMatchObject({ code: 'LOCK_LOST', lockName: 'a' });
});

it('what the work throws comes as it is, also where it looks like a lost seat', async () => {
  await using locks = createLocks(memoryBackend());
  const broken = new Error('broken');
  await expect(newestWins(locks, 'a', () => Promise.reject(broken))).rejects.toBe(broken);
  const seatLock = locks.lock(SEAT, { [OWN_LOCK]: true } as LockOptions);
  const seat = await seatLock.acquire();
  await seatLock.acquire({ steal: true });
  const lost: unknown = await seat.renew().catch((error: unknown) => error);
  const call = newestWins(locks, 'a', () => {
    throw lost;
  });
  await expect(call).rejects.toBe(lost);
  expect(await locks.isLocked('a')).toBe(false);
});

it('has the options of the lock: the lease has its ttl, and operators see its label', async () => {
  await using locks = createLocks(memoryTestBackend());
  await newestWins(
    locks,
    'a',
    async (lease) => {
      expect(lease.validForMs).toBeLessThanOrEqual(700);
      const [holder] = (await locks.inspect('a')).holders;
      expect(holder?.label).toBe('editor');
    },
    { ttlMs: 700, label: 'editor' },
  );
});

describe('a mistake is refused at once', () => {
  it.each<[string, unknown, unknown, string]>([
    ['swapped work and options', {}, () => 1, 'newestWins(locks, name, work, options): the work must be'],
    ['no work', undefined, {}, 'newestWins(locks, name, work, options): the work must be a function'],
    ['a misspelt option', () => 1, { waitMS: 5 }, 'waitMs'],
    ['a bad ttl', () => 1, { ttlMs: -1 }, 'ttlMs must be'],
    ['a bad wait', () => 1, { waitMs: Number.NaN }, 'waitMs must be'],
    ['no signal', () => 1, { signal: 'now' }, 'signal must be an AbortSignal'],
  ])('%s', async (_, work, options, says) => {
    await using locks = createLocks(memoryBackend());
    const call = newestWins(locks, 'a', work as () => number, options as NewestWinsOptions);
    await expect(call).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
    await expect(call).rejects.toThrow(says);
  });

  const { features } = memoryBackend().capabilities;
  it.each([
    ['steal', { features: features.filter((feature) => feature !== 'steal') }],
    ['a queue', { order: 'none' }],
  ] as const)('a backend without %s', async (_, lacks) => {
    const backend = memoryBackend();
    const capabilities = { ...backend.capabilities, ...lacks };
    await using locks = createLocks(delegate(backend, { capabilities }));
    const call = newestWins(locks, 'a', () => 1);
    await expect(call).rejects.toMatchObject({ code: 'LOCK_UNSUPPORTED', lockName: 'a' });
  });
});
