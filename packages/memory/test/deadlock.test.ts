import { describe, expect, onTestFinished, test } from 'vitest';
import {
  createLocks,
  isLockError,
  type Lock,
  type LockError,
  type LockManager,
  type LockOptions,
} from '@locks/core';
import { memoryBackend } from '../src/index.ts';
import { barrierOf, member } from './circle.ts';

/** Fails a test whose wait would have been refused; a wait that goes on never takes as long. */
const LONG = { waitMs: 60_000 };

/** The locks of a store of their own. */
function locksOf(options: LockOptions): LockManager {
  const locks = createLocks(memoryBackend(), options);
  onTestFinished(() => locks.close());
  return locks;
}

/** A circle of `count` members: each waits for what the next one holds. */
function circle(locks: readonly Lock[]): Promise<('entered' | LockError)[]> {
  const barrier = barrierOf(locks.length);
  return Promise.all(
    locks.map((lock, index) => member(lock, locks[(index + 1) % locks.length] as Lock, barrier)),
  );
}

const refusals = (outcomes: readonly unknown[]): LockError[] =>
  outcomes.filter((outcome) => isLockError(outcome));

describe('a wait that closes a circle', () => {
  test.each([2, 3, 4])('of %i is refused, and all others enter', async (count) => {
    const locks = locksOf(LONG);
    const names = ['p', 'q', 'r', 's'].slice(0, count);
    const outcomes = await circle(names.map((name) => locks.lock(name, { label: `holds ${name}` })));
    const [error, ...others] = refusals(outcomes);
    expect(others).toEqual([]);
    const { circle: members = [] } = error as LockError;
    expect(members).toHaveLength(count);
    for (const [index, { name, label, waitsFor }] of members.entries()) {
      expect(waitsFor).toBe(members[(index + 1) % count]?.name);
      expect(label).toBe(`holds ${name}`);
    }
    expect(members.map(({ name }) => name).toSorted()).toEqual(names);
  });

  test('is told in words', async () => {
    const locks = locksOf(LONG);
    const outcomes = await circle([locks.lock('p', { label: 'A' }), locks.lock('q', { label: 'B' })]);
    const [error] = refusals(outcomes);
    expect(error?.message).toMatch(
      /this code holds "(.)" and waits for "(.)"; other code of this process \("[AB]"\) holds "\2" and waits for "\1"\. Take locks in one order/,
    );
    expect(error?.lockName).toBe(error?.circle?.[0]?.waitsFor);
  });

  test('over two managers, of different stores', async () => {
    const outcomes = await circle([locksOf(LONG).lock('p'), locksOf(LONG).lock('p')]);
    expect(refusals(outcomes)).toHaveLength(1);
  });

  test('of readers who want to write what the other reads', async () => {
    const locks = locksOf(LONG);
    const [p, q] = [locks.readWriteLock('p'), locks.readWriteLock('q')];
    const barrier = barrierOf(2);
    const outcomes = await Promise.all([member(p.read, q.write, barrier), member(q.read, p.write, barrier)]);
    expect(refusals(outcomes)).toHaveLength(1);
  });

  test('of two readers of one lock who both want to write', async () => {
    const { read, write } = locksOf(LONG).readWriteLock('p');
    await read.run(async () => {
      await expect(write.acquire()).rejects.toMatchObject({ code: 'LOCK_REENTRANT' });
    });
  });

  test('through the last permits', async () => {
    const locks = locksOf(LONG);
    const [slots, q] = [locks.semaphore('slots', 2), locks.lock('q')];
    const barrier = barrierOf(3);
    const holdsBoth = (): Promise<'entered' | LockError> => member(slots as unknown as Lock, q, barrier);
    const outcomes = await Promise.all([
      holdsBoth(),
      holdsBoth(),
      member(q, slots as unknown as Lock, barrier),
    ]);
    expect(refusals(outcomes)).toHaveLength(1);
  });

  test('of locks.all against single ones', async () => {
    const locks = locksOf(LONG);
    const [p, q] = [locks.lock('p'), locks.lock('q')];
    const outcome = await q.run(async () => {
      const set = locks.detached(() => locks.all([p, q]).run(() => 'entered'));
      // The set has taken p and waits for q.
      await expect.poll(async () => (await q.inspect()).waiters.length).toBe(1);
      const own = await p.acquire().catch((error: unknown) => error);
      expect(own).toMatchObject({ code: 'LOCK_DEADLOCK' });
      return { set };
    });
    expect(await outcome.set).toBe('entered');
  });

  test('of branches of one run', async () => {
    const locks = locksOf(LONG);
    const [p, q] = [locks.lock('p'), locks.lock('q')];
    const outcomes = await locks.lock('outer').run(() => circle([p, q]));
    expect(refusals(outcomes)).toHaveLength(1);
  });

  test('leaves the queue, and the error of the one is no error of the others', async () => {
    const locks = locksOf(LONG);
    const [p, q] = [locks.lock('p'), locks.lock('q')];
    await circle([p, q]);
    for (const lock of [p, q]) expect(await lock.inspect()).toMatchObject({ holders: [], waiters: [] });
  });
});

describe('no wait is refused', () => {
  /** Both waits go on until their time is over. */
  const SHORT = { waitMs: 50 };

  async function codes(waits: readonly Promise<unknown>[]): Promise<unknown[]> {
    const settled = await Promise.allSettled(waits);
    return settled.map((each) => (each.status === 'fulfilled' ? 'entered' : each.reason.code));
  }

  test('where somebody outside of the circle may end it: a permit is left', async () => {
    const locks = locksOf(SHORT);
    const [slots, q] = [locks.semaphore('slots', 2), locks.lock('q')];
    // A permit of code that waits for nothing comes back.
    const free = await slots.acquire();
    await slots.run(async () => {
      await q.run(async () => {
        setTimeout(() => void free.release(), 10);
        await slots.acquire({ waitMs: 60_000 }).then((lease) => lease.release());
      });
    });
  });

  test('where a reader waits to read', async () => {
    const locks = locksOf(LONG);
    const [p, q] = [locks.readWriteLock('p'), locks.readWriteLock('q')];
    const barrier = barrierOf(2);
    const outcomes = await Promise.all([member(p.read, q.read, barrier), member(q.read, p.read, barrier)]);
    expect(outcomes).toEqual(['entered', 'entered']);
  });

  test('where the holder waits for nothing, or for something else', async () => {
    const locks = locksOf(SHORT);
    const elsewhere = await locks.lock('r').acquire();
    const barrier = barrierOf(2);
    const waits = [
      locks.lock('p').run(async () => {
        await barrier();
        await locks.lock('r').acquire();
      }),
      locks.lock('q').run(async () => {
        await barrier();
        await locks.lock('p').acquire({ waitMs: 10 });
      }),
    ];
    expect(await codes(waits)).toEqual(['LOCK_TIMEOUT', 'LOCK_TIMEOUT']);
    await elsewhere.release();
  });

  test('after the wait of the other has ended', async () => {
    const locks = locksOf(LONG);
    const [p, q] = [locks.lock('p'), locks.lock('q')];
    const [barrier, over] = [barrierOf(2), barrierOf(2)];
    const outcomes = Promise.all([
      p.run(async () => {
        await barrier();
        await expect(q.acquire({ waitMs: 5 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
        await over();
      }),
      q.run(async () => {
        await barrier();
        await over();
        await (await p.acquire()).release();
      }),
    ]);
    await outcomes;
  });

  test('whose code runs in locks.detached, or makes a single attempt', async () => {
    const locks = locksOf(SHORT);
    const [p, q] = [locks.lock('p'), locks.lock('q')];
    const barrier = barrierOf(2);
    const waits = [
      p.run(async () => {
        await barrier();
        await locks.detached(() => q.acquire());
      }),
      q.run(async () => {
        await barrier();
        expect(await p.tryAcquire()).toBeUndefined();
        await p.acquire({ waitMs: 5 });
      }),
    ];
    expect(await codes(waits)).toEqual(['entered', 'LOCK_TIMEOUT']);
  });

  test('where the name is that of another store', async () => {
    const [one, two] = [locksOf(SHORT), locksOf(SHORT)];
    const taken = await two.lock('q').acquire();
    const barrier = barrierOf(2);
    const waits = [
      one.lock('p').run(async () => {
        await barrier();
        await two.lock('q').acquire();
      }),
      one.lock('q').run(async () => {
        await barrier();
        await one.lock('p').acquire({ waitMs: 5 });
      }),
    ];
    expect(await codes(waits)).toEqual(['LOCK_TIMEOUT', 'LOCK_TIMEOUT']);
    await taken.release();
  });
});

test('ten thousand waits inside of runs cost a nested wait little', async () => {
  const locks = locksOf(LONG);
  const hot = locks.lock('hot');
  const end = await hot.run(async () => {
    const wait = (_: unknown, index: number): Promise<void> =>
      locks.lock(`own ${index}`).run(() => hot.acquire().then((lease) => lease.release()));
    const waits = locks.detached(() => Array.from({ length: 10_000 }, wait));
    await expect.poll(async () => (await hot.inspect()).waiters.length, { timeout: 20_000 }).toBe(10_000);
    const other = await locks.detached(() => locks.lock('other').acquire());
    const startedAt = performance.now();
    const nested = locks.lock('other').acquire();
    await other.release();
    await (await nested).release();
    return { waits, tookMs: performance.now() - startedAt };
  });
  await Promise.all(end.waits);
  expect(end.tookMs).toBeLessThan(10_000);
});
