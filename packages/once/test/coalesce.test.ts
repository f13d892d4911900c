import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, LockError, type FencedLease, type LockManager } from '@locks/core';
import { delegate } from '@locks/core/conformance';
import { memoryBackend, MemoryStore } from '@locks/memory';
import { describe, expect, it, vi } from 'vitest';
import { coalesce, type CoalesceOptions, type ResultStore } from '../src/index.ts';

/** A store of results that compares tokens, and has a clock of its own. */
class TestResults implements ResultStore {
  readonly entries = new Map<string, { value: string; token: bigint; until: number }>();
  readonly written: bigint[] = [];
  now = 0;
  reads = 0;

  async get(key: string): Promise<string | null> {
    this.reads += 1;
    await sleep(1);
    const entry = this.entries.get(key);
    return entry !== undefined && entry.until > this.now ? entry.value : null;
  }

  async set(key: string, value: string, token: bigint, ttlMs: number): Promise<void> {
    if ((this.entries.get(key)?.token ?? 0n) > token)
      throw new LockError('LOCK_LOST', 'a newer token wrote', { reason: 'taken-over' });
    this.entries.set(key, { value, token, until: this.now + ttlMs });
    this.written.push(token);
  }
}

function processes(count: number): LockManager<FencedLease>[] {
  const shared = new MemoryStore();
  return Array.from({ length: count }, () => createLocks(memoryBackend(shared)));
}

const closeAll = (all: readonly LockManager<FencedLease>[]) => Promise.all(all.map((locks) => locks.close()));

/** An object that contains itself. */
function cycle(): object {
  const all = { a: { b: [] as object[] } };
  all.a.b.push(all.a);
  return all;
}

/** Work that counts its runs, gives their number, and fails where two run at a time. */
function counted() {
  const state = { runs: 0, running: 0 };
  const work = async (): Promise<{ run: number }> => {
    state.running += 1;
    expect(state.running).toBe(1);
    state.runs += 1;
    const run = state.runs;
    await sleep(20);
    state.running -= 1;
    return { run };
  };
  return { state, work };
}

describe('within a process', () => {
  it('ten thousand callers that come while the work runs get one result, and the next one a new one', async () => {
    await using locks = createLocks(memoryBackend());
    const { work } = counted();
    const { signal } = new AbortController();
    const all = Array.from({ length: 10_000 }, (_, n) =>
      coalesce(locks, 'prices', work, n % 2 === 0 ? {} : { signal }),
    );
    const results = await Promise.all(all);
    expect(new Set(results).size).toBe(1);
    expect(await coalesce(locks, 'prices', work)).toEqual({ run: 2 });
    expect(await locks.isLocked('prices')).toBe(false);
  });

  it('keys and managers are apart', async () => {
    const [a, b] = processes(2) as [LockManager<FencedLease>, LockManager<FencedLease>];
    const { work } = counted();
    const ran = await Promise.all([coalesce(a, 'x', work), coalesce(b, 'x', work), coalesce(a, 'x', work)]);
    expect(ran.map(({ run }) => run).toSorted((one, other) => one - other)).toEqual([1, 1, 2]);
    const other = await Promise.all([coalesce(a, 'y', () => 'y'), coalesce(a, 'z', () => 'z')]);
    expect(other).toEqual(['y', 'z']);
    await closeAll([a, b]);
  });

  it('an error goes to all that wait, and the next call runs again', async () => {
    await using locks = createLocks(memoryBackend());
    const broken = new Error('the source is away');
    const fails = () => coalesce(locks, 'prices', () => Promise.reject(broken));
    const outcomes = await Promise.allSettled([fails(), fails(), fails()]);
    for (const outcome of outcomes) expect(outcome).toEqual({ status: 'rejected', reason: broken });
    expect(await coalesce(locks, 'prices', () => 7)).toBe(7);
  });

  it('a caller leaves by its signal, and the others get the result', async () => {
    await using locks = createLocks(memoryBackend());
    const leaves = new AbortController();
    let workSignal: AbortSignal | undefined;
    const work = async ({ signal }: { signal: AbortSignal }) => {
      workSignal = signal;
      leaves.abort(new Error('enough'));
      await sleep(10);
      return 'built';
    };
    const gone = coalesce(locks, 'prices', work, { signal: leaves.signal });
    const stays = coalesce(locks, 'prices', work, { signal: new AbortController().signal });
    await expect(gone).rejects.toThrow('enough');
    expect(await stays).toBe('built');
    expect(workSignal?.aborted).toBe(false);
  });

  it('when the last caller has left, the work is aborted, and who comes next starts anew', async () => {
    await using locks = createLocks(memoryBackend());
    const leaves = new AbortController();
    const aborted = vi.fn();
    let workSignal: AbortSignal | undefined;
    const gone = coalesce(
      locks,
      'prices',
      ({ signal }) =>
        new Promise<never>((_, reject) => {
          signal.addEventListener('abort', () => {
            aborted(signal.reason);
            reject(signal.reason as Error);
          });
          workSignal = signal;
        }),
      { signal: leaves.signal },
    );
    await vi.waitFor(() => expect(workSignal).toBeDefined(), { interval: 1 });
    leaves.abort(new Error('enough'));
    const next = coalesce(locks, 'prices', () => 'built');
    await expect(gone).rejects.toThrow('enough');
    expect(await next).toBe('built');
    expect(aborted).toHaveBeenCalledExactlyOnceWith(leaves.signal.reason);
  });

  it('an aborted run that ends later does not part the callers of the next one', async () => {
    await using locks = createLocks(memoryBackend());
    const leaves = new AbortController();
    let end = (): void => undefined;
    const stubborn = new Promise<void>((resolve) => (end = resolve));
    const began = vi.fn();
    const gone = coalesce(locks, 'prices', async () => (began(), stubborn), { signal: leaves.signal });
    await vi.waitFor(() => expect(began).toHaveBeenCalled(), { interval: 1 });
    leaves.abort(new Error('enough'));
    await expect(gone).rejects.toThrow('enough');
    const { work } = counted();
    const next = coalesce(locks, 'prices', work);
    end();
    await vi.waitFor(async () => expect((await locks.inspect('prices')).waiters).toEqual([]), {
      interval: 1,
    });
    expect(await coalesce(locks, 'prices', work)).toBe(await next);
  });

  it('waits for the lock until waitMs, and not at all with an aborted signal', async () => {
    await using locks = createLocks(memoryBackend());
    const held = await locks.lock('prices').acquire();
    const late = coalesce(locks, 'prices', () => 1, { waitMs: 20 });
    await expect(late).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    const signal = AbortSignal.abort(new Error('before'));
    await expect(coalesce(locks, 'prices', () => 1, { signal })).rejects.toThrow('before');
    await held.release();
    expect(await coalesce(locks, 'prices', () => 1)).toBe(1);
  });

  it('the work learns that the lock is lost', async () => {
    await using locks = createLocks(memoryBackend());
    const lost = coalesce(
      locks,
      'prices',
      async ({ signal, fencingToken }) => {
        expect(fencingToken).toBeGreaterThan(0n);
        const ends = new Promise((resolve) => signal.addEventListener('abort', resolve));
        await locks.forceRelease('prices');
        await ends;
        signal.throwIfAborted();
      },
      { ttlMs: 100 },
    );
    await expect(lost).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });
});

describe('over processes, with a store', () => {
  it('callers that come while the work runs, and those within shareForMs, get one result', async () => {
    const all = processes(3);
    const store = new TestResults();
    const { state, work } = counted();
    const options: CoalesceOptions = { store, shareForMs: 5_000 };
    const callAll = () =>
      Promise.all(
        Array.from({ length: 24 }, (_, n) =>
          coalesce(all[n % 3] as LockManager<FencedLease>, 'prices', work, options),
        ),
      );
    expect(await callAll()).toEqual(Array(24).fill({ run: 1 }));
    store.now += 4_999;
    store.reads = 0;
    expect(await callAll()).toEqual(Array(24).fill({ run: 1 }));
    // The callers of a process share a read, and nobody took the lock.
    expect(store.reads).toBe(3);
    store.now += 1;
    expect(await callAll()).toEqual(Array(24).fill({ run: 2 }));
    expect(state.runs).toBe(2);
    const [first = 0n, second = 0n] = store.written;
    expect(second).toBeGreaterThan(first);
    await closeAll(all);
  });

  it('is kept for a second where nothing else is said', async () => {
    const [locks] = processes(1) as [LockManager<FencedLease>];
    const store = new TestResults();
    await coalesce(locks, 'prices', () => 1, { store });
    expect(store.entries.get('prices')?.until).toBe(1_000);
    await locks.close();
  });

  it('after an error another process runs the work itself', async () => {
    const [a, b] = processes(2) as [LockManager<FencedLease>, LockManager<FencedLease>];
    const store = new TestResults();
    const fails = coalesce(
      a,
      'prices',
      async () => {
        await sleep(20);
        throw new Error('the source is away');
      },
      { store },
    );
    await vi.waitFor(async () => expect(await a.isLocked('prices')).toBe(true), { interval: 1 });
    const works = coalesce(b, 'prices', () => 'built', { store });
    await expect(fails).rejects.toThrow('the source is away');
    expect(await works).toBe('built');
    await closeAll([a, b]);
  });

  it('a process that lost its lock does not replace the newer result, and gives its own', async () => {
    const [a, b] = processes(2) as [LockManager<FencedLease>, LockManager<FencedLease>];
    const store = new TestResults();
    const late = coalesce(
      a,
      'prices',
      async () => {
        await a.forceRelease('prices');
        expect(await coalesce(b, 'prices', () => 'newer', { store })).toBe('newer');
        return 'late';
      },
      { store },
    );
    expect(await late).toBe('late');
    expect(await coalesce(a, 'prices', () => 'another', { store })).toBe('newer');
    expect(store.written).toHaveLength(1);
    await closeAll([a, b]);
  });

  it('does not work under a lock that ended while the store was asked', async () => {
    await using locks = createLocks(memoryBackend());
    const store = new TestResults();
    const { get } = store;
    store.get = async (key) => {
      // This process stands still, so the lease is not renewed.
      if (await locks.isLocked('prices'))
        for (const from = performance.now(); performance.now() < from + 120; );
      return get.call(store, key);
    };
    const work = vi.fn(() => 1);
    const lost = coalesce(locks, 'prices', work, { store, ttlMs: 50 });
    await expect(lost).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(work).not.toHaveBeenCalled();
  });

  it.each([
    [
      'plain data',
      { a: [1, 'é', true, null, [{}]], ['__proto__x']: 0.1 },
      { a: [1, 'é', true, null, [{}]], ['__proto__x']: 0.1 },
    ],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    ['nothing', undefined, undefined],
    ['null', null, null],
    ['a missing field', { a: 1, b: undefined }, { a: 1 }],
  ])('every caller gets what JSON makes of the result: %s', async (_, value, shown) => {
    const [a, b] = processes(2) as [LockManager<FencedLease>, LockManager<FencedLease>];
    const store = new TestResults();
    expect(await coalesce(a, 'x', () => value as unknown, { store })).toEqual(shown);
    expect(await coalesce(b, 'x', () => 'not run' as unknown, { store })).toEqual(shown);
    await closeAll([a, b]);
  });

  it.each([
    ['a bigint', 1n, 'it is a bigint'],
    ['a function', () => 1, 'it is a function'],
    ['a date', new Date(0), 'it is an object of Date'],
    ['a map', { prices: new Map([['a', 1]]) }, 'prices is an object of Map'],
    ['a set', [1, new Set([1])], '[1] is an object of Set'],
    ['bytes', { a: { b: new Uint8Array(2) } }, 'a.b is an object of Uint8Array'],
    ['a buffer', Buffer.from('a'), 'it is an object of Buffer'],
    ['an instance', new (class Price {})(), 'it is an object of Price'],
    ['a subclass of arrays', new (class List extends Array {})(), 'it is an object of List'],
    ['not a number', { a: [Number.NaN] }, 'a[0] is NaN'],
    ['infinity', Number.POSITIVE_INFINITY, 'it is Infinity'],
    ['nothing in an array', [[undefined]], '[0][0] is undefined'],
    // oxlint-disable-next-line no-sparse-arrays -- It is what is refused.
    ['a hole', { a: [1, , 2] }, 'a[1] is undefined'],
    ['a property of an array', Object.assign([1], { total: 1 }), 'it is an array with properties'],
    ['a method', { a: 1, toJSON: () => 2 }, 'toJSON is a function'],
    ['a symbol as a key', { [Symbol('a')]: 1 }, 'it has a symbol as a key'],
    ['a boxed number', { a: Object(1) as unknown }, 'a is an object of Number'],
    ['an error', new TypeError('x'), 'it is an object of TypeError'],
    ['a cycle', cycle(), 'a.b[0] contains itself'],
  ])('a result that JSON would change is refused, and the error has it: %s', async (_, value, what) => {
    await using locks = createLocks(memoryBackend());
    const store = new TestResults();
    const refused = coalesce(locks, 'x', () => value as unknown, { store });
    const error = await refused.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
    expect((error as Error).message).toContain(`: ${what}. `);
    expect((error as LockError).result).toBe(value);
    expect(store.entries.size).toBe(0);
    expect(await locks.isLocked('x')).toBe(false);
    expect(await coalesce(locks, 'x', () => value)).toBe(value);
  });

  it('a result of another version is built anew; what is no result is refused', async () => {
    await using locks = createLocks(memoryBackend());
    const store = new TestResults();
    const put = (value: string) => store.entries.set('x', { value, token: 0n, until: 1 });
    put('{"version":2,"value":{"shape":"new"}}');
    expect(await coalesce(locks, 'x', () => 'built', { store })).toBe('built');
    for (const foreign of ['x', '7', 'null', '{}']) {
      put(foreign);
      const refused = coalesce(locks, 'x', () => 1, { store });
      await expect(refused).rejects.toThrow('what the store has under x was not written by coalesce()');
    }
    const buffers = { get: async () => Buffer.from('x'), set: async () => undefined };
    const refused = coalesce(locks, 'x', () => 1, { store: buffers as unknown as ResultStore });
    await expect(refused).rejects.toThrow('coalesce(): what store.get gives of x must be a string');
  });

  it('an error of the store goes to the callers, and leaves nothing held', async () => {
    await using locks = createLocks(memoryBackend());
    const store = new TestResults();
    const broken = new Error('the store is away');
    const { get, set } = store;
    store.get = () => Promise.reject(broken);
    const callers = [1, 2].map(() => coalesce(locks, 'x', () => 1, { store }));
    for (const outcome of await Promise.allSettled(callers))
      expect(outcome).toEqual({ status: 'rejected', reason: broken });
    store.get = get;
    store.set = () => Promise.reject(broken);
    await expect(coalesce(locks, 'x', () => 1, { store })).rejects.toBe(broken);
    expect(await locks.isLocked('x')).toBe(false);
    store.set = set;
    expect(await coalesce(locks, 'x', () => 1, { store })).toBe(1);
  });
});

describe('a mistake is refused at once', () => {
  const store = new TestResults();
  it.each<[string, unknown, unknown, string]>([
    [
      'swapped work and options',
      { store },
      () => 1,
      'coalesce(locks, name, work, options): the work must be',
    ],
    ['no work', undefined, {}, 'coalesce(locks, name, work, options): the work must be a function'],
    ['a misspelt option', () => 1, { store, shareForMS: 5 }, 'shareForMs'],
    ['a store without set', () => 1, { store: { get() {} } }, 'an object with the functions get and set'],
    ['no time', () => 1, { store, shareForMs: 0 }, 'shareForMs must be'],
    ['a time without a store', () => 1, { shareForMs: 5 }, 'shareForMs goes with a store'],
    ['a bad ttl', () => 1, { ttlMs: -1 }, 'ttlMs must be'],
    ['a bad wait', () => 1, { waitMs: Number.NaN }, 'waitMs must be'],
    ['no signal', () => 1, { signal: 'now' }, 'signal must be an AbortSignal'],
  ])('%s', async (_, work, options, says) => {
    await using locks = createLocks(memoryBackend());
    const call = coalesce(locks, 'x', work as () => number, options as CoalesceOptions);
    await expect(call).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
    await expect(call).rejects.toThrow(says);
  });

  it('a bad name', async () => {
    await using locks = createLocks(memoryBackend());
    await expect(coalesce(locks, '', () => 1)).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
  });

  it('a store beside a backend without tokens', async () => {
    const backend = memoryBackend();
    const capabilities = { ...backend.capabilities, fencing: 'none' } as const;
    await using locks = createLocks(
      delegate(backend, { capabilities }),
    ) as unknown as LockManager<FencedLease>;
    const refused = coalesce(locks, 'x', () => 1, { store });
    await expect(refused).rejects.toMatchObject({ code: 'LOCK_UNSUPPORTED', lockName: 'x' });
    expect(await coalesce(locks, 'x', () => 1)).toBe(1);
  });
});
