import { setTimeout as delay } from 'node:timers/promises';
import type { BackendFeature } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { quorumBackend } from '@locks/quorum';
import { MemoryStore, memoryBackend } from '@locks/memory';
import { describe, expect, it } from 'vitest';
import { type WebLocks, webLocks } from '../src/index.ts';
import { changed } from './changed-backend.ts';
import { failure, hold } from './hold.ts';

const ALL = memoryBackend().capabilities.features;
const without = (...gone: BackendFeature[]): BackendFeature[] =>
  ALL.filter((feature) => !gone.includes(feature));

describe('a backend without the feature steal', () => {
  it('ends the holds by force: the waiters enter first, then the request that steals', async () => {
    await using locks = webLocks(changed(new MemoryStore(), { features: without('steal') }), {
      ttlMs: 600_000,
    });
    const readers = [await hold(locks, 'a', { mode: 'shared' }), await hold(locks, 'a', { mode: 'shared' })];
    const stolen = readers.map(({ requested }) => failure(requested));
    const order: string[] = [];
    const waiting = locks.request('a', () => void order.push('waiter'));
    await locks.request('a', { steal: true }, () => void order.push('stealing'));
    await waiting;
    expect(order).toEqual(['waiter', 'stealing']);
    expect(await Promise.all(stolen)).toEqual(['AbortError', 'AbortError']);
  });

  it('refuses to steal where there is no force either, and nothing else', async () => {
    const backend = changed(
      new MemoryStore(),
      { features: without('steal', 'force-release') },
      { forceRelease: undefined as never },
    );
    await using locks = webLocks(backend);
    const held = await hold(locks, 'a');
    expect(await failure(locks.request('a', { steal: true }, () => {}))).toBe('NotSupportedError');
    held.release('kept');
    expect(await held.requested).toBe('kept');
  });
});

describe('a backend that cannot list', () => {
  it('refuses query(), and grants all the same', async () => {
    const backend = changed(new MemoryStore(), { features: without('list') }, { list: undefined as never });
    await using locks = webLocks(backend);
    expect(await failure(locks.query())).toBe('NotSupportedError');
    expect(await locks.request('a', () => 'granted')).toBe('granted');
  });
});

describe('a backend without shared locks', () => {
  it('refuses them, and grants exclusive ones', async () => {
    await using locks = webLocks(
      changed(
        new MemoryStore(),
        { modes: ['exclusive'] },
        { downgrade: undefined as never, resize: undefined as never },
      ),
    );
    expect(await failure(locks.request('a', { mode: 'shared' }, () => {}))).toBe('NotSupportedError');
    expect(await locks.request('a', () => 'granted')).toBe('granted');
  });
});

describe('a backend whose calls overtake each other', () => {
  it('gets the requests of one client in their order', async () => {
    const store = new MemoryStore();
    const inner: LockBackend = memoryBackend(store);
    let calls = 0;
    const backend = changed(
      store,
      {},
      {
        // The first call takes longest.
        async attempt(request, enqueue, call) {
          calls += 1;
          await delay(Math.max(0, 40 - 10 * calls));
          return inner.attempt(request, enqueue, call);
        },
      },
    );
    await using locks = webLocks(backend);
    const order: string[] = [];
    const note = (what: string) => () => void order.push(what);
    const all = [1, 2, 3, 4].map((number) => locks.request('a', note(`a${number}`)));
    all.push(locks.request('b', note('b')), locks.request('c', { ifAvailable: true }, note('c')));
    await Promise.all(all);
    // b and c were free: their callbacks come as soon as the four before them stand in the queue.
    expect(order.filter((one) => one.startsWith('a'))).toEqual(['a1', 'a2', 'a3', 'a4']);
    expect(order.indexOf('b')).toBeGreaterThan(order.indexOf('a1'));
    expect(order.indexOf('c')).toBeGreaterThan(order.indexOf('b'));
  });
});

describe('a backend that keeps no order', () => {
  /** The first to ask after a release gets the lock. */
  const unordered = (store: MemoryStore): LockBackend => {
    const inner: LockBackend = memoryBackend(store);
    return changed(
      store,
      { order: 'none', features: without('waiters') },
      {
        async attempt(request, _, call) {
          const attempt = await inner.attempt(request, false, call);
          return attempt.status === 'contended' ? { ...attempt, retryAfterMs: 2 } : attempt;
        },
        awaitTurn: undefined as never,
      },
    );
  };

  it('serves the requests of one client in their order all the same, and shows them', async () => {
    await using locks = webLocks(unordered(new MemoryStore()));
    const held = await hold(locks, 'a', { mode: 'shared' });
    const order: string[] = [];
    const note = (what: string) => () => void order.push(what);
    const controller = new AbortController();
    const all = [
      locks.request('a', note('writer')),
      failure(locks.request('a', { signal: controller.signal }, note('aborted'))),
      locks.request('a', { mode: 'shared' }, note('reader')),
      locks.request('a', note('last')),
    ];
    await locks.request('b', note('other name'));
    // A reader would fit, but others were first.
    await locks.request('a', { mode: 'shared', ifAvailable: true }, (lock) =>
      note(lock === null ? 'not available' : 'available')(),
    );
    controller.abort();
    const { pending } = await locks.query();
    expect(pending.map(({ mode }) => mode)).toEqual(['exclusive', 'shared', 'exclusive']);
    held.release();
    await Promise.all(all);
    expect(order).toEqual(['other name', 'not available', 'writer', 'reader', 'last']);
  });

  it.each<[string, (locks: WebLocks) => Promise<unknown>]>([
    [
      'was aborted',
      async (locks) => {
        const controller = new AbortController();
        const aborted = failure(locks.request('a', { signal: controller.signal }, () => {}));
        // The request stands in the queue.
        await locks.request('b', () => {});
        controller.abort();
        expect(await aborted).toBe('AbortError');
      },
    ],
    ['did not want to wait', (locks) => locks.request('a', { ifAvailable: true }, () => {})],
  ])('calls back for other names while requests wait whose last one %s', async (_, comeAndGo) => {
    const store = new MemoryStore();
    await using other = webLocks(unordered(store));
    await using locks = webLocks(unordered(store));
    const held = await hold(other, 'a');
    const order: string[] = [];
    const note = (what: string) => () => void order.push(what);
    const first = locks.request('a', note('first'));
    await comeAndGo(locks);
    const last = locks.request('a', note('last'));
    await locks.request('b', note('other name'));
    expect(order).toEqual(['other name']);
    held.release();
    await Promise.all([first, last]);
    expect(order).toEqual(['other name', 'first', 'last']);
  });

  it('lets a request that steals overtake the requests of its own client', async () => {
    await using locks = webLocks(unordered(new MemoryStore()), { ttlMs: 600_000 });
    const held = failure((await hold(locks, 'a')).requested);
    const order: string[] = [];
    const waiting = locks.request('a', () => void order.push('waiter'));
    await locks.request('a', { steal: true }, () => void order.push('stealing'));
    await waiting;
    expect(order).toEqual(['stealing', 'waiter']);
    expect(await held).toBe('AbortError');
  });
});

describe('a quorum of three', () => {
  it('serves each client in its order, shares, and steals', async () => {
    const stores = [1, 2, 3].map(() => new MemoryStore());
    const quorum = () => quorumBackend(stores.map((store) => memoryBackend(store)));
    await using one = webLocks(quorum(), { ttlMs: 600 });
    await using other = webLocks(quorum(), { ttlMs: 600 });
    const order: string[] = [];
    const requests = (locks: WebLocks, who: string) =>
      [1, 2, 3, 4].map((number) => locks.request('a', () => order.push(`${who}${number}`)));
    await Promise.all([...requests(one, 'x'), ...requests(other, 'y')]);
    for (const who of ['x', 'y']) {
      const own = order.filter((entry) => entry.startsWith(who));
      expect(own).toEqual([1, 2, 3, 4].map((number) => `${who}${number}`));
    }
    const readers = [await hold(one, 'a', { mode: 'shared' }), await hold(other, 'a', { mode: 'shared' })];
    expect(await one.request('a', { ifAvailable: true }, (lock) => lock)).toBe(null);
    const stolen = readers.map(({ requested }) => failure(requested));
    expect(await one.request('a', { steal: true }, () => 'stolen')).toBe('stolen');
    expect(await Promise.all(stolen)).toEqual(['AbortError', 'AbortError']);
  });
});

describe('a backend with a long shortest ttl', () => {
  it('is given that', async () => {
    await using locks = webLocks(changed(new MemoryStore(), { ttl: { minMs: 30_000, stepMs: 1_000 } }));
    expect(await locks.request('a', () => 'granted')).toBe('granted');
  });
});

describe('a backend that fails', () => {
  it('rejects with the error of core where trying again is of no use', async () => {
    const failing = changed(
      new MemoryStore(),
      {},
      { attempt: () => Promise.reject(new Error('no such database')) },
    );
    await using locks = webLocks(failing);
    await expect(locks.request('a', () => {})).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
  });

  it('keeps the outcome of the callback when only the release got no answer', async () => {
    const failing = changed(
      new MemoryStore(),
      {},
      { release: () => Promise.reject(new Error('connection reset')) },
    );
    await using locks = webLocks(failing);
    expect(await locks.request('a', () => 'done')).toBe('done');
  });

  it('answers query() with its failure also while requests get no answer', async () => {
    const gone = changed(
      new MemoryStore(),
      {},
      {
        attempt: () => new Promise(() => {}),
        // oxlint-disable-next-line require-yield -- it fails before it yields anything
        list: async function* () {
          throw new Error('connection refused');
        },
      },
    );
    const locks = webLocks(gone);
    const asked = failure(locks.request('a', () => {}));
    await expect(locks.query()).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
    await locks.close();
    expect(await asked).toBe('AbortError');
  });
});
