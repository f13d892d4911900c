import { createLocks, type LockError, type LockEvents, type LockManager, onLockEvent } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { memoryBackend, MemoryStore } from '../src/index.ts';

const LONG = { deadlockAfterMs: 200 };

interface Process {
  readonly locks: LockManager;
  /** The names that were read, in their order. */
  readonly reads: string[];
}

/** A manager of its own on a store. `answer` is what the store answers instead, where it gives something. */
function managerOn(
  store: MemoryStore,
  label: string,
  options: { deadlockAfterMs?: number } = {},
  answer: (name: string) => Promise<never> | undefined = () => undefined,
): Process {
  const backend: LockBackend = memoryBackend(store);
  const reads: string[] = [];
  const inspect: LockBackend['inspect'] = (name, ...more) => {
    reads.push(name);
    const inspected = Object.getPrototypeOf(backend).inspect as LockBackend['inspect'];
    return answer(name) ?? inspected.call(backend, name, ...more);
  };
  Object.assign(backend, { inspect });
  const locks = createLocks(backend, { label, waitMs: 60_000, ...options }) as LockManager;
  onTestFinished(() => locks.close());
  return { locks, reads };
}

/** Holds one lock and waits for another one, until the test is over. */
async function holdsAndWaits({ locks }: Process, held: string, wanted: string, label: string): Promise<void> {
  const end = new AbortController();
  const { signal } = end;
  const wait = () => locks.lock(wanted).acquire({ signal });
  const hold = locks
    .lock(held)
    .run(wait, { label })
    .catch(() => {});
  onTestFinished(async () => {
    end.abort();
    await hold;
  });
  await expect.poll(async () => (await locks.inspect(wanted)).waiters.length).toBe(1);
}

/** The error of a wait that nobody ends. */
function timeoutOf({ locks }: Process, name: string, waitMs: number): Promise<LockError> {
  return locks
    .lock(name)
    .acquire({ waitMs })
    .then(
      () => expect.unreachable('it is held'),
      (error: LockError) => error,
    );
}

const member = (name: string, label: string, waitsFor: string | undefined) =>
  expect.objectContaining({ name, label, waitsFor, heldForMs: expect.any(Number) as number }) as object;

// What follows chains is loaded by the first wait that gives up, which does not wait for it.
beforeAll(async () => {
  const locks = createLocks(memoryBackend());
  await locks.lock('q').acquire();
  while ((await timeoutOf({ locks, reads: [] }, 'q', 100)).chain === undefined);
  await locks.close();
});

describe('the chain of a wait that gives up', () => {
  test('is known at once within a process, without a request', async () => {
    const store = new MemoryStore();
    const [a, b, c] = ['a', 'b', 'c'].map((label) => managerOn(store, label)) as [Process, Process, Process];
    await c.locks.lock('r').acquire();
    await holdsAndWaits(b, 'q', 'r', 'b');
    const given: LockEvents['locks:gave-up'][] = [];
    onTestFinished(onLockEvent('locks:gave-up', (event) => given.push(event)));
    b.reads.length = 0;
    const error = await timeoutOf(a, 'q', 150);
    expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', chain: [member('q', 'b', 'r')] });
    expect(error.message).toContain('b waits for "r".');
    expect(given).toMatchObject([{ name: 'q', chain: error.chain }]);
    expect([...a.reads, ...b.reads]).toEqual(['q']);
    await holdsAndWaits(b, 's', 'q', 'd');
    const longer = await timeoutOf(a, 's', 150);
    expect(longer.chain).toEqual([member('s', 'd', 'q'), member('q', 'b', 'r')]);
    expect(longer.message).toMatch(/d waits for "q", held by b for \d+ ms, which waits for "r"\./);
  });

  test('goes over processes by what long waits tell, for a wait that is long itself', async () => {
    const store = new MemoryStore();
    const a = managerOn(store, 'a', LONG);
    await toldHold(store, 'q', 'b', 'r');
    await toldHold(store, 'r', 'c', undefined);
    const short = await timeoutOf(a, 'q', 150);
    expect(short.chain).toEqual([member('q', 'b', undefined)]);
    expect(short.message).not.toContain('b waits');
    expect(a.reads).toEqual(['q']);
    const long = await timeoutOf(a, 'q', 500);
    expect(long.chain).toEqual([member('q', 'b', 'r'), member('r', 'c', undefined)]);
    expect(long.message).toMatch(/ b waits for "r", held by c for \d+ ms\./);
    expect(a.reads.slice(1)).toEqual(['q', `@locks/waits/${idOf('q')}`, 'r', `@locks/waits/${idOf('r')}`]);
  });

  test('ends where it closes a circle', async () => {
    const store = new MemoryStore();
    const a = managerOn(store, 'a', LONG);
    await toldHold(store, 'q', 'b', 'r');
    await toldHold(store, 'r', 'c', 'q');
    expect((await timeoutOf(a, 'q', 500)).chain).toEqual([member('q', 'b', 'r'), member('r', 'c', 'q')]);
  });

  test('follows the holder that waits, of several', async () => {
    const store = new MemoryStore();
    const [a, b] = [managerOn(store, 'a'), managerOn(store, 'b')];
    await b.locks.semaphore('slots', 2).acquire({ label: 'works' });
    await b.locks.lock('r').acquire();
    const waits = b.locks
      .semaphore('slots', 2)
      .run(() => b.locks.lock('r').acquire({ waitMs: 2_000 }), { label: 'waits' })
      .catch(() => {});
    await expect.poll(async () => (await b.locks.inspect('r')).waiters.length).toBe(1);
    const error = (await a.locks
      .semaphore('slots', 2)
      .acquire({ waitMs: 100 })
      .catch((thrown: unknown) => thrown)) as LockError;
    expect(error.chain).toEqual([member('slots', 'waits', 'r'), member('r', 'b', undefined)]);
    await b.locks.forceRelease('r');
    await waits;
  });

  test('costs at most 32 reads in each period, however many give up', async () => {
    const store = new MemoryStore();
    const a = managerOn(store, 'a', LONG);
    const names = Array.from({ length: 50 }, (_, index) => `q ${index}`);
    for (const name of names) await toldHold(store, name, 'b', undefined);
    await Promise.all(names.map((name) => timeoutOf(a, name, 500)));
    expect(a.reads.filter((name) => name.startsWith('@locks/')).length).toBeLessThanOrEqual(32);
    expect(a.reads.length).toBeLessThanOrEqual(names.length + 32);
  });

  test.each([
    ['fails', (): Promise<never> => Promise.reject(new Error('the connection is closed'))],
    ['is late', (): Promise<never> => new Promise(() => {})],
  ])('ends with the holder that was known where a request %s', async (_, answer) => {
    const store = new MemoryStore();
    await toldHold(store, 'q', 'b', 'r');
    await toldHold(store, 'r', 'c', undefined);
    const lookups = [
      [`@locks/waits/${idOf('q')}`, [member('q', 'b', undefined)]],
      ['r', [member('q', 'b', 'r')]],
      [`@locks/waits/${idOf('r')}`, [member('q', 'b', 'r'), member('r', 'c', undefined)]],
    ] as const;
    for (const [lookup, chain] of lookups) {
      const a = managerOn(store, 'a', LONG, (name) => (name === lookup ? answer() : undefined));
      expect(await timeoutOf(a, 'q', 500)).toMatchObject({ code: 'LOCK_TIMEOUT', chain });
      expect(a.reads).toContain(lookup);
    }
  });

  test('has what this process knows itself where a request fails', async () => {
    const store = new MemoryStore();
    const a = managerOn(store, 'a', LONG);
    let isBroken = false;
    const b = managerOn(store, 'b', LONG, (name) =>
      isBroken && name === 'r' ? Promise.reject(new Error('the connection is closed')) : undefined,
    );
    await b.locks.lock('r').acquire({ label: 'c' });
    await holdsAndWaits(b, 'q', 'r', 'b');
    isBroken = true;
    b.reads.length = 0;
    expect((await timeoutOf(a, 'q', 500)).chain).toEqual([
      member('q', 'b', 'r'),
      member('r', 'c', undefined),
    ]);
    expect(b.reads).toContain('r');
  });

  test('ends with a hold of another program, whose id is sent nowhere', async () => {
    const store = new MemoryStore();
    for (const [index, foreignId] of ['v'.repeat(600), 'a value: of 20 chars'].entries()) {
      const a = managerOn(store, 'a', LONG);
      const name = `foreign ${index}`;
      await toldHold(store, name, 'cron', undefined, foreignId);
      expect((await timeoutOf(a, name, 500)).chain).toEqual([member(name, 'cron', undefined)]);
      expect(a.reads).toEqual([name]);
    }
  });

  test('is no part of LOCK_CONTENDED, which waits for nobody', async () => {
    const store = new MemoryStore();
    const [a, b, c] = ['a', 'b', 'c'].map((label) => managerOn(store, label)) as [Process, Process, Process];
    await c.locks.lock('r').acquire();
    await holdsAndWaits(b, 'q', 'r', 'b');
    expect((await timeoutOf(a, 'q', 150)).chain).toEqual([member('q', 'b', 'r')]);
    const { code, chain, message } = await timeoutOf(a, 'q', 0);
    // The holders are still those that were asked for a moment ago.
    expect({ code, chain, reads: a.reads }).toEqual({
      code: 'LOCK_CONTENDED',
      chain: undefined,
      reads: ['q'],
    });
    expect(message).not.toContain('b waits');
  });

  test('is read with no request where circles are not looked for', async () => {
    const store = new MemoryStore();
    const a = managerOn(store, 'a', { deadlockAfterMs: Number.POSITIVE_INFINITY });
    await toldHold(store, 'q', 'b', 'r');
    expect((await timeoutOf(a, 'q', 500)).chain).toEqual([member('q', 'b', undefined)]);
    expect(a.reads).toEqual(['q']);
  });
});

/** The id of another process's hold: 20 characters, as core makes them. */
function idOf(name: string): string {
  return `id-of-${name.replaceAll(' ', '-')}`.padEnd(20, '-');
}

/** A hold of another process, and the lock by which that tells what it waits for. */
async function toldHold(
  store: MemoryStore,
  name: string,
  label: string,
  waitsFor: string | undefined,
  acquisitionId = idOf(name),
): Promise<void> {
  const backend = memoryBackend(store);
  const call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
  const request = { mode: { kind: 'exclusive' }, ttlMs: 60_000 } as const;
  await backend.attempt({ ...request, resource: name, acquisitionId, label }, false, call);
  if (waitsFor === undefined) return;
  const edge = { resource: `@locks/waits/${acquisitionId}`, acquisitionId: `edge of ${name}` };
  await backend.attempt({ ...request, ...edge, label: `1 000000000.z x ${waitsFor}` }, false, call);
}
