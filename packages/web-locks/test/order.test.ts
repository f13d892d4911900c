import { setTimeout as delay } from 'node:timers/promises';
import type { LockBackend } from '@locks/core/backend';
import { MemoryStore, memoryBackend } from '@locks/memory';
import { describe, expect, it } from 'vitest';
import { changed } from './changed-backend.ts';
import { failure, hold } from './hold.ts';
import { make } from './lab.ts';

/** A backend whose later calls are answered sooner, and what it was asked. */
function backendWithLog(): { backend: LockBackend; sent: string[]; answered: string[] } {
  const store = new MemoryStore();
  const inner: LockBackend = memoryBackend(store);
  const sent: string[] = [];
  const answered: string[] = [];
  let calls = 0;
  const slow = async <T>(what: string, call: () => Promise<T>): Promise<T> => {
    sent.push(what);
    calls += 1;
    await delay(Math.max(0, 20 - 2 * calls));
    const answer = await call();
    answered.push(what);
    return answer;
  };
  const nameOf = (resource: string): string => resource.replace('web-locks:', '');
  const backend = changed(
    store,
    {},
    {
      attempt: (request, enqueue, call) =>
        slow(`request ${nameOf(request.resource)}`, () => inner.attempt(request, enqueue, call)),
      release: (grant, call) =>
        slow(`release ${nameOf(grant.request.resource)}`, () => inner.release(grant, call)),
      abandon: (request, call) =>
        slow(`abandon ${nameOf(request.resource)}`, () => inner.abandon(request, call)),
    },
  );
  return { backend, sent, answered };
}

/** A backend that never answers a request for the name `stalled`. */
function stallingBackend(): LockBackend {
  const store = new MemoryStore();
  const inner: LockBackend = memoryBackend(store);
  return changed(
    store,
    {},
    {
      attempt: (request, enqueue, call) =>
        request.resource.endsWith(':stalled') ? new Promise(() => {}) : inner.attempt(request, enqueue, call),
    },
  );
}

describe('the tasks of one client', () => {
  it('reach the store one after the other, whatever their names', async () => {
    const { backend, sent, answered } = backendWithLog();
    const locks = make(backend);
    const aborter = new AbortController();
    const inside: Promise<unknown>[] = [];
    const first = locks.request('a', () => {
      inside.push(locks.request('b', () => {}));
      inside.push(failure(locks.request('a', { signal: aborter.signal }, () => {})));
      inside.push(locks.request('a', { ifAvailable: true }, (lock) => lock));
    });
    const second = locks.request('c', () => {});
    await first;
    aborter.abort('aborted');
    expect(await inside[2]).toBe(null);
    await Promise.all([second, ...inside]);
    expect(sent).toEqual(answered);
    expect(sent.slice(0, 2)).toEqual(['request a', 'request c']);
    expect(sent.indexOf('release a')).toBeGreaterThan(sent.indexOf('request b'));
  });

  it('are not held up for ever by a store that gives one of them no answer', async () => {
    const locks = make(stallingBackend());
    const held = await hold(locks, 'a');
    const stalled = failure(locks.request('stalled', () => {}));
    const startedAt = performance.now();
    held.release('done');
    expect(await held.requested).toBe('done');
    const tookMs = performance.now() - startedAt;
    expect(tookMs).toBeGreaterThan(900);
    expect(tookMs).toBeLessThan(2_500);
    // It is still without an answer, and nobody waits for it any more.
    const laterAt = performance.now();
    expect(await locks.request('b', () => 'granted')).toBe('granted');
    expect(performance.now() - laterAt).toBeLessThan(500);
    await locks.close();
    expect(await stalled).toBe('AbortError');
  });

  it('wait for none of another name with order: name', async () => {
    const locks = make(stallingBackend(), { order: 'name' });
    const held = await hold(locks, 'a');
    const stalled = failure(locks.request('stalled', () => {}));
    let taken: unknown;
    const startedAt = performance.now();
    await locks.request('b', () => {
      taken = locks.request('b', { ifAvailable: true }, (lock) => lock);
    });
    held.release('done');
    expect(await held.requested).toBe('done');
    expect(performance.now() - startedAt).toBeLessThan(500);
    // Those of one name do.
    expect(await taken).toBe(null);
    await locks.close();
    expect(await stalled).toBe('AbortError');
  });

  it('are answered by close() at once, also those that were not sent', async () => {
    const locks = make(stallingBackend());
    const all = ['stalled', 'a', 'b'].map((name) => failure(locks.request(name, () => {})));
    const startedAt = performance.now();
    await locks.close();
    expect(await Promise.all(all)).toEqual(['AbortError', 'AbortError', 'AbortError']);
    expect(performance.now() - startedAt).toBeLessThan(900);
  });
});

describe('readers', () => {
  /** The messages of granted waiters arrive in the opposite order. */
  function tellingBackwards(): LockBackend {
    const store = new MemoryStore();
    const inner: LockBackend = memoryBackend(store);
    let waits = 0;
    return changed(
      store,
      {},
      {
        async awaitTurn(request, call) {
          waits += 1;
          const lateMs = Math.max(0, 100 - 20 * waits);
          const grant = await inner.awaitTurn?.(request, call);
          await delay(lateMs);
          return grant;
        },
      },
    );
  }

  it('that are granted together are called in the order of their requests', async () => {
    const locks = make(tellingBackwards());
    const held = await hold(locks, 'a');
    const order: number[] = [];
    const all = [1, 2, 3, 4].map((number) =>
      locks.request('a', { mode: 'shared' }, () => void order.push(number)),
    );
    await locks.query();
    held.release();
    await Promise.all(all);
    expect(order).toEqual([1, 2, 3, 4]);
  });

  it('do not wait for one before them that was aborted', async () => {
    const locks = make();
    const held = await hold(locks, 'a');
    const aborter = new AbortController();
    const aborted = failure(locks.request('a', { mode: 'shared', signal: aborter.signal }, () => {}));
    const reader = locks.request('a', { mode: 'shared' }, () => 'called');
    await locks.query();
    const startedAt = performance.now();
    held.release();
    aborter.abort('aborted');
    expect([await aborted, await reader]).toEqual(['aborted', 'called']);
    expect(performance.now() - startedAt).toBeLessThan(500);
  });
});
