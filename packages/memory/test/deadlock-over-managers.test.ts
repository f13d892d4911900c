import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createLocks, type Lock, type LockError, type LockManager } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { memoryBackend, MemoryStore } from '../src/index.ts';
import { barrierOf, member } from './circle.ts';

/** How long a wait lasts before circles are looked for, in milliseconds. */
const PERIOD = 200;
/** The beginning of what is kept of long waits. */
const WAITS = '@locks/waits/';

interface Process {
  readonly locks: LockManager;
  /** The names that were written and read, in their order. */
  readonly writes: string[];
  readonly reads: string[];
}

/** A manager of its own, as another process has one: nothing in this process tells core what the others wait for. */
function processOn(store: MemoryStore, options: { deadlockAfterMs?: number; label?: string } = {}): Process {
  const backend: LockBackend = memoryBackend(store);
  const writes: string[] = [];
  const reads: string[] = [];
  const counted = Object.assign(Object.create(backend) as LockBackend, {
    attempt: (...given: Parameters<LockBackend['attempt']>) => {
      writes.push(given[0].resource);
      return backend.attempt(...given);
    },
    attemptMany: (...given: Parameters<NonNullable<LockBackend['attemptMany']>>) => {
      writes.push(given[0].map(({ resource }) => resource).join(' '));
      return backend.attemptMany?.(...given);
    },
    renew: (...given: Parameters<LockBackend['renew']>) => {
      writes.push(given[0].map(({ grant }) => grant.request.resource).join(' '));
      return backend.renew(...given);
    },
    awaitTurn: (...given: Parameters<NonNullable<LockBackend['awaitTurn']>>) => backend.awaitTurn?.(...given),
    abandon: (...given: Parameters<LockBackend['abandon']>) => backend.abandon(...given),
    release: (...given: Parameters<LockBackend['release']>) => backend.release(...given),
    inspect: (...given: Parameters<LockBackend['inspect']>) => {
      reads.push(given[0]);
      return backend.inspect(...given);
    },
    list: (...given: Parameters<NonNullable<LockBackend['list']>>) => backend.list?.(...given),
    close: () => backend.close(),
  });
  const locks = createLocks(counted, { waitMs: 60_000, deadlockAfterMs: PERIOD, ...options }) as LockManager;
  onTestFinished(() => locks.close());
  return { locks, writes, reads };
}

/** Fails unless one of the outcomes is a deadlock, and all others entered. */
function theOneError(outcomes: readonly ('entered' | LockError)[]): LockError {
  const errors = outcomes.filter((outcome) => outcome !== 'entered');
  expect(errors.map(({ code }) => code)).toEqual(['LOCK_DEADLOCK']);
  return errors[0] as LockError;
}

/** What is left in the store of long waits. */
async function leftBehind({ locks }: Process): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of locks.list('@locks/')) names.push(name);
  return names;
}

describe('a circle over managers of their own', () => {
  test.each([2, 3, 4])('of %i ends with one error, and nothing is left of it', async (count) => {
    const store = new MemoryStore();
    const names = ['p', 'q', 'r', 's'].slice(0, count);
    const processes = names.map((name) => processOn(store, { label: `holds ${name}` }));
    const barrier = barrierOf(count);
    const startedAt = performance.now();
    const outcomes = await Promise.all(
      processes.map(({ locks }, index) =>
        member(locks.lock(names[index] as string), locks.lock(names[(index + 1) % count] as string), barrier),
      ),
    );
    expect(performance.now() - startedAt).toBeLessThan(10 * PERIOD);
    const { circle = [], lockName } = theOneError(outcomes);
    expect(circle).toHaveLength(count);
    expect(circle[0]?.waitsFor).toBe(lockName);
    for (const [index, { name, label, waitsFor }] of circle.entries()) {
      expect(waitsFor).toBe(circle[(index + 1) % count]?.name);
      expect(label).toBe(`holds ${name}`);
    }
    await expect.poll(() => leftBehind(processes[0] as Process)).toEqual([]);
  });

  test('is ended by the youngest wait', async () => {
    const store = new MemoryStore();
    const [a, b] = [processOn(store), processOn(store)];
    const barrier = barrierOf(2);
    const older = member(a.locks.lock('p'), a.locks.lock('q'), barrier);
    const younger = member(b.locks.lock('q'), b.locks.lock('p'), async () => {
      await barrier();
      await delay(PERIOD / 2);
    });
    await expect(younger).resolves.toMatchObject({ code: 'LOCK_DEADLOCK' });
    await expect(older).resolves.toBe('entered');
  });

  test('of readers who want to write what the other reads', async () => {
    const store = new MemoryStore();
    const [a, b] = [processOn(store).locks, processOn(store).locks];
    const barrier = barrierOf(2);
    theOneError(
      await Promise.all([
        member(a.readWriteLock('p').read, a.readWriteLock('q').write, barrier),
        member(b.readWriteLock('q').read, b.readWriteLock('p').write, barrier),
      ]),
    );
  });

  test('through the last permits', async () => {
    const store = new MemoryStore();
    const [a, b, c] = [processOn(store).locks, processOn(store).locks, processOn(store).locks];
    const barrier = barrierOf(3);
    const slots = (locks: LockManager) => locks.semaphore('slots', 2) as unknown as Lock;
    theOneError(
      await Promise.all([
        member(slots(a), a.lock('q'), barrier),
        member(slots(b), b.lock('q'), barrier),
        member(c.lock('q'), slots(c), barrier),
      ]),
    );
  });

  test('of locks.all against single ones', async () => {
    const store = new MemoryStore();
    const [a, b] = [processOn(store).locks, processOn(store).locks];
    const outcome = await b.lock('q').run(async () => {
      const set = a.detached(() =>
        a.all([a.lock('p'), a.lock('q')]).run(() => 'entered' as const, { waitMs: 60_000 }),
      );
      await expect.poll(async () => (await b.inspect('q')).waiters.length).toBe(1);
      const own = await b
        .lock('p')
        .run(() => 'entered' as const)
        .catch((error: LockError) => error);
      return { set, own };
    });
    expect(outcome.own).toMatchObject({ code: 'LOCK_DEADLOCK' });
    expect(await outcome.set).toBe('entered');
  });

  test('over two stores that both processes use', async () => {
    const [left, right] = [new MemoryStore(), new MemoryStore()];
    const processes = [0, 1].map(() => [processOn(left), processOn(right)] as const);
    const [[a1, a2], [b1, b2]] = processes as [readonly [Process, Process], readonly [Process, Process]];
    const barrier = barrierOf(2);
    theOneError(
      await Promise.all([
        member(a1.locks.lock('p'), a2.locks.lock('p'), barrier),
        member(b2.locks.lock('p'), b1.locks.lock('p'), barrier),
      ]),
    );
    await expect.poll(async () => [...(await leftBehind(a1)), ...(await leftBehind(a2))]).toEqual([]);
  });

  test('of one code that waits for itself over another manager', async () => {
    const store = new MemoryStore();
    const [a, b] = [processOn(store).locks, processOn(store).locks];
    const outcome = await member(a.lock('p'), b.lock('p'), async () => {});
    expect(theOneError([outcome]).circle).toMatchObject([{ name: 'p', waitsFor: 'p' }]);
  });

  test('with names of every character', async () => {
    const store = new MemoryStore();
    const [p, q] = ['50 % of 1 x\n\u0085', 'ü\u0000 🔒'];
    const [a, b] = [processOn(store).locks, processOn(store).locks];
    const barrier = barrierOf(2);
    theOneError(
      await Promise.all([
        member(a.lock(p as string), a.lock(q as string), barrier),
        member(b.lock(q as string), b.lock(p as string), barrier),
      ]),
    );
  });

  test('is not looked for where that is switched off', async () => {
    const store = new MemoryStore();
    const off = { deadlockAfterMs: Number.POSITIVE_INFINITY };
    const [a, b] = [processOn(store, off), processOn(store, off)];
    const barrier = barrierOf(2);
    const wait = { waitMs: 5 * PERIOD };
    const outcomes = await Promise.all([
      member(a.locks.lock('p'), a.locks.lock('q', wait), barrier, 'LOCK_TIMEOUT'),
      member(b.locks.lock('q'), b.locks.lock('p', wait), barrier, 'LOCK_TIMEOUT'),
    ]);
    expect(outcomes).toContainEqual(expect.objectContaining({ code: 'LOCK_TIMEOUT' }));
    expect(outcomes).not.toContainEqual(expect.objectContaining({ code: 'LOCK_DEADLOCK' }));
    expect([...a.writes, ...b.writes].filter((name) => name.includes(WAITS))).toEqual([]);
  });
});

describe('a wait that is in no circle', () => {
  test('ends with the release, however long it was, and is told by a lock that list leaves out', async () => {
    const store = new MemoryStore();
    const [a, b, c] = [processOn(store), processOn(store), processOn(store)];
    const r = await c.locks.lock('r').acquire();
    const behind = member(a.locks.lock('p'), a.locks.lock('q'), async () => {});
    const middle = member(b.locks.lock('q'), b.locks.lock('r'), async () => {});
    await delay(6 * PERIOD);
    const edges = await leftBehind(a);
    expect(edges).toHaveLength(2);
    const listed: string[] = [];
    for await (const { name } of a.locks.list()) listed.push(name);
    expect(listed.toSorted()).toEqual(['p', 'q', 'r']);
    await r.release();
    expect(await Promise.all([behind, middle])).toEqual(['entered', 'entered']);
    await expect.poll(() => leftBehind(a)).toEqual([]);
  });

  test('goes on where a permit may still be given back', async () => {
    const store = new MemoryStore();
    const [a, b, c] = [processOn(store).locks, processOn(store).locks, processOn(store).locks];
    // One of the two permits is held by code that waits for nothing.
    const free = await b.semaphore('slots', 2).acquire();
    const barrier = barrierOf(2);
    const outcomes = [
      member(a.semaphore('slots', 2) as unknown as Lock, a.lock('q'), barrier),
      member(c.lock('q'), c.semaphore('slots', 2) as unknown as Lock, barrier),
    ];
    await delay(6 * PERIOD);
    await free.release();
    expect(await Promise.all(outcomes)).toEqual(['entered', 'entered']);
  });

  test('behind a circle is not its victim', async () => {
    const store = new MemoryStore();
    const [a, b, c] = [processOn(store).locks, processOn(store).locks, processOn(store).locks];
    const barrier = barrierOf(2);
    const circle = [member(a.lock('p'), a.lock('q'), barrier), member(b.lock('q'), b.lock('p'), barrier)];
    await delay(PERIOD / 2);
    const behind = member(c.lock('own'), c.lock('p'), async () => {});
    theOneError(await Promise.all(circle));
    expect(await behind).toBe('entered');
  });

  test('is read twice: a circle of the first reading alone is none', async () => {
    const store = new MemoryStore();
    const [a, b] = [processOn(store), processOn(store)];
    const abort = new AbortController();
    const barrier = barrierOf(2);
    // The older wait ends between the two readings of the younger one, and its lock is held for some time after that.
    const older = a.locks.lock('p').run(async () => {
      await barrier();
      const outcome = await a.locks
        .lock('q')
        .acquire({ signal: abort.signal })
        .catch(() => 'aborted' as const);
      await delay(3 * PERIOD);
      return outcome;
    });
    const younger = member(b.locks.lock('q'), b.locks.lock('p'), async () => {
      await barrier();
      await delay(PERIOD / 2);
    });
    // The younger one has then read what the older one's hold waits for, and its own hold.
    await expect.poll(() => b.reads.filter((name) => name === 'q').length, { interval: 1 }).toBe(1);
    abort.abort();
    expect(await older).toBe('aborted');
    expect(await younger).toBe('entered');
    expect(b.reads.filter((name) => name === 'p').length).toBeGreaterThan(1);
  });

  test('ends with the ttl of a process that died while it waited', async () => {
    const store = new MemoryStore();
    const [dead, b] = [memoryBackend(store), processOn(store)];
    const q = await b.locks.lock('q').acquire();
    const hold = {
      resource: 'p',
      acquisitionId: 'x'.repeat(20),
      mode: { kind: 'exclusive' },
      ttlMs: 5 * PERIOD,
    } as const;
    const call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
    await dead.attempt(hold, false, call);
    // Its edge says that it waits for q, and nobody keeps it.
    const edge = { ...hold, resource: `${WAITS}${hold.acquisitionId}`, acquisitionId: 'y'.repeat(20) };
    await dead.attempt({ ...edge, label: '1 000000000.z x q' }, false, call);
    await q.release();
    const outcome = await member(b.locks.lock('q'), b.locks.lock('p'), async () => {});
    expect(outcome).toBe('entered');
    expect(b.reads).toContain(edge.resource);
  });

  test('asks for no wait of another program, whose id may be too long for a name', async () => {
    const store = new MemoryStore();
    const a = processOn(store);
    const call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
    const hold = { resource: 'q', acquisitionId: 'v'.repeat(600), mode: { kind: 'exclusive' } } as const;
    await memoryBackend(store).attempt({ ...hold, ttlMs: 5 * PERIOD }, false, call);
    expect(await member(a.locks.lock('p'), a.locks.lock('q'), async () => {})).toBe('entered');
    expect(new Set(a.reads.slice(1))).toEqual(new Set(['q']));
  });

  test('sends nothing before its time, and then one write and two reads for each lock of the chain', async () => {
    const store = new MemoryStore();
    const [a, b] = [processOn(store), processOn(store)];
    const held = await b.locks.lock('q').acquire();
    const wait = member(a.locks.lock('p'), a.locks.lock('q'), async () => {});
    await delay(PERIOD / 2);
    expect(a.reads).toEqual([]);
    expect(a.writes).toEqual(['p', 'q']);
    const periods = 10;
    await delay(periods * PERIOD);
    const edges = a.writes.slice(2);
    expect(edges.length).toBeGreaterThan(1);
    expect(edges.length).toBeLessThanOrEqual(periods + 1);
    // One more shows at the first edge whether the store gives back the labels.
    expect(a.reads.length).toBeLessThanOrEqual(2 * (periods + 1) + 1);
    expect(a.reads.length).toBeGreaterThan(periods);
    await held.release();
    expect(await wait).toBe('entered');
  });

  test('sends nothing, however long, where its code holds nothing', async () => {
    const store = new MemoryStore();
    const [a, b] = [processOn(store), processOn(store)];
    const held = await b.locks.lock('q').acquire();
    const wait = a.locks.lock('q').run(() => {});
    await delay(4 * PERIOD);
    expect([a.reads, a.writes]).toEqual([[], ['q']]);
    await held.release();
    await wait;
  });

  test('of a thousand costs no more than that of one, for each of its periods', async () => {
    const store = new MemoryStore();
    const [a, b] = [processOn(store), processOn(store)];
    const held = await b.locks.lock('q').acquire();
    const waits = Array.from({ length: 1_000 }, (_, index) =>
      member(a.locks.lock(`p ${index}`), a.locks.lock('q'), async () => {}),
    );
    await delay(PERIOD / 2);
    const before = a.writes.length;
    const periods = 5;
    await delay(periods * PERIOD);
    expect(a.writes.length - before).toBeLessThanOrEqual(periods + 1);
    expect(a.reads.length).toBeLessThanOrEqual(2 * (periods + 1) + 1);
    await held.release();
    expect(new Set(await Promise.all(waits))).toEqual(new Set(['entered']));
    await expect.poll(() => leftBehind(a)).toEqual([]);
  });
});
