import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { createLocks } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { MemoryStore, memoryBackend } from '@locks/memory';
import { describe, expect, it } from 'vitest';
import { leaseOf, webLocks } from '../src/index.ts';
import { changed } from './changed-backend.ts';
import { failure, hold } from './hold.ts';
import { make, two } from './lab.ts';

describe('request', () => {
  it('rejects with what the callback threw, even a thenable, and never calls its then', async () => {
    const locks = make();
    let calls = 0;
    // oxlint-disable-next-line unicorn/no-thenable -- a thenable is what the case is about
    const thrown = Object.assign(new Error('thrown'), { then: () => (calls += 1) });
    const outcomes = await Promise.allSettled([
      locks.request('a', () => {
        throw thrown;
      }),
      locks.request('a', async () => {
        throw thrown;
      }),
      locks.request('a', () => 'the lock is free again'),
    ]);
    expect(outcomes).toEqual([
      { status: 'rejected', reason: thrown },
      { status: 'rejected', reason: thrown },
      { status: 'fulfilled', value: 'the lock is free again' },
    ]);
    expect(calls).toBe(0);
  });

  it('calls the callback without a receiver, and with one argument', async () => {
    const seen = await make().request('a', function (this: unknown, ...all: unknown[]) {
      return [this, all.length];
    });
    expect(seen).toEqual([undefined, 1]);
  });

  it('refuses a wrong receiver with a rejection, not with a throw', async () => {
    const { request, query } = make();
    expect(await failure(Reflect.apply(request, undefined, ['a', () => {}]))).toBe('TypeError');
    expect(await failure(Reflect.apply(query, {}, []))).toBe('TypeError');
  });

  it('calls the callback in the asynchronous context of its request', async () => {
    const context = new AsyncLocalStorage<string>();
    const locks = make();
    const held = await hold(locks, 'a');
    const asked = ['one', 'two'].map((name) =>
      context.run(name, () => locks.request('a', () => context.getStore())),
    );
    held.release();
    expect(await Promise.all(asked)).toEqual(['one', 'two']);
  });

  it('gives locks that nobody can make', async () => {
    const { lock, release } = await hold(make(), 'a');
    const Lock = lock.constructor as new () => unknown;
    expect(() => new Lock()).toThrow('Illegal constructor');
    expect(() => Lock.prototype.name).toThrow(TypeError);
    expect(() => leaseOf({ name: 'a', mode: 'exclusive' })).toThrow(TypeError);
    expect(() => leaseOf(null)).toThrow(TypeError);
    release();
  });

  it('has the lease of core behind a lock', async () => {
    const { lock, release, requested } = await hold(make(), 'a');
    const lease = leaseOf(lock);
    expect([lease.name, typeof lease.fencingToken, lease.signal.aborted]).toEqual([
      'web-locks:a',
      'bigint',
      false,
    ]);
    release();
    await requested;
    expect(lease.validForMs).toBe(0);
  });

  it('serves many requests for one name in their order', async () => {
    const locks = make();
    const order: number[] = [];
    const numbers = Array.from({ length: 500 }, (_, index) => index);
    await Promise.all(numbers.map((number) => locks.request('a', () => order.push(number))));
    expect(order).toEqual(numbers);
  });

  it('keeps clients apart and waits for each other', async () => {
    const [one, other] = two();
    const held = await hold(one, 'a');
    let granted = false;
    const waiting = other.request('a', () => (granted = true));
    expect((await other.query()).pending).toEqual([
      { name: 'a', mode: 'exclusive', clientId: other.clientId },
    ]);
    expect(granted).toBe(false);
    held.release();
    expect(await waiting).toBe(true);
  });

  it('shares nothing with another scope, nor with the locks of core', async () => {
    const store = new MemoryStore();
    const [mine, theirs] = [make(memoryBackend(store)), make(memoryBackend(store), { scope: 'theirs' })];
    const core = createLocks(memoryBackend(store));
    const held = await hold(mine, 'a');
    expect(await theirs.request('a', { ifAvailable: true }, (lock) => lock !== null)).toBe(true);
    await core.lock('a').run(() => {});
    expect((await theirs.query()).held).toEqual([]);
    held.release();
  });
});

describe('order', () => {
  it('calls a callback with null before those of later requests', async () => {
    const locks = make();
    const held = await hold(locks, 'a');
    const order: string[] = [];
    await Promise.all([
      locks.request('a', { ifAvailable: true }, () => order.push('null')),
      locks.request('b', () => order.push('b')),
    ]);
    expect(order).toEqual(['null', 'b']);
    held.release();
  });
});

describe('loss', () => {
  it('rejects at the release when only that finds out that the lock was lost', async () => {
    const store = new MemoryStore();
    const locks = make(memoryBackend(store), { ttlMs: 600_000 });
    const held = await hold(locks, 'a');
    await createLocks(memoryBackend(store)).forceRelease('web-locks:a');
    held.release('worthless');
    const error = (await held.requested.catch((reason: unknown) => reason)) as DOMException;
    expect(error).toMatchObject({ name: 'AbortError', cause: { reason: 'force-released' } });
  });

  it('never calls the callback with a lock that is lost already', async () => {
    const store = new MemoryStore();
    const inner: LockBackend = memoryBackend(store);
    const lost = AbortSignal.abort('session-lost');
    let attempts = 0;
    const backend = changed(
      store,
      {},
      {
        async attempt(request, enqueue, call) {
          const attempt = await inner.attempt(request, enqueue, call);
          attempts += 1;
          return attempts === 1 && attempt.status === 'granted'
            ? { ...attempt, grant: { ...attempt.grant, lost } }
            : attempt;
        },
      },
    );
    // The store is asked again, and what it grants then is a lock.
    const called = await make(backend).request('a', () => attempts);
    expect(called).toBe(2);
  });
});

describe('signal', () => {
  it('takes an aborted waiter out of the queue, so that those behind it are served', async () => {
    const locks = make();
    const reader = await hold(locks, 'a', { mode: 'shared' });
    const controller = new AbortController();
    const writer = failure(locks.request('a', { signal: controller.signal }, () => 'never'));
    const behind = hold(locks, 'a', { mode: 'shared' });
    expect((await locks.query()).pending.map(({ mode }) => mode)).toEqual(['exclusive', 'shared']);
    controller.abort();
    // Not awaited: what is asked next has to know of it.
    const after = await locks.request('a', { mode: 'shared', ifAvailable: true }, (lock) => lock?.mode);
    expect(after).toBe('shared');
    expect(await writer).toBe('AbortError');
    const { held, pending } = await locks.query();
    expect([held.map(({ mode }) => mode), pending]).toEqual([['shared', 'shared'], []]);
    for (const { release } of [reader, await behind]) release();
  });

  it('waits for the store to let an aborted waiter go before it says what is available', async () => {
    const store = new MemoryStore();
    const inner: LockBackend = memoryBackend(store);
    const backend = changed(
      store,
      {},
      {
        async abandon(request, call) {
          await delay(20);
          await inner.abandon(request, call);
        },
      },
    );
    const locks = make(backend);
    const reader = await hold(locks, 'a', { mode: 'shared' });
    const controller = new AbortController();
    const writer = failure(locks.request('a', { signal: controller.signal }, () => 'never'));
    await locks.query();
    controller.abort('stop');
    expect(await writer).toBe('stop');
    expect((await locks.query()).pending).toEqual([]);
    const options = { mode: 'shared', ifAvailable: true } as const;
    expect(await locks.request('a', options, (lock) => lock !== null)).toBe(true);
    reader.release();
  });

  it('notices the abort also where another listener stops the event', async () => {
    const locks = make();
    const held = await hold(locks, 'a');
    const controller = new AbortController();
    controller.signal.addEventListener('abort', (event) => event.stopImmediatePropagation());
    const waiting = locks.request('a', { signal: controller.signal }, () => 'never');
    controller.abort('stop');
    await expect(waiting).rejects.toBe('stop');
    held.release();
  });

  it('never calls the callback once the signal is aborted, at whatever moment that is', async () => {
    for (let ticks = 0; ticks < 40; ticks += 1) {
      const locks = make();
      const controller = new AbortController();
      let calledAfter = false;
      const asked = locks.request('a', { signal: controller.signal }, () => {
        calledAfter = controller.signal.aborted;
        return 'called';
      });
      for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
      controller.abort('too late or not');
      const outcome = await asked.catch((error: unknown) => error);
      expect(['called', 'too late or not']).toContain(outcome);
      expect(calledAfter).toBe(false);
      // Nothing is left behind.
      expect(await locks.request('a', { ifAvailable: true }, (lock) => lock !== null)).toBe(true);
    }
  });
});

describe('webLocks', () => {
  it('refuses what is no backend, and options that it does not know', () => {
    for (const passed of [
      [undefined],
      [{}],
      [memoryBackend(), { ttl: 5 }],
      [memoryBackend(), { ttlMs: -1 }],
      [memoryBackend(), { order: 'names' }],
    ]) {
      expect(() => webLocks(...(passed as [LockBackend]))).toThrow(
        expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
      );
    }
  });
});

describe('close', () => {
  it('rejects the requests of holders and waiters when the lock manager is closed', async () => {
    const locks = make();
    const held = (await hold(locks, 'a')).requested;
    const asked = Promise.allSettled([held, locks.request('a', () => 'never')]);
    await locks.close();
    for (const outcome of await asked) {
      expect(outcome).toMatchObject({
        reason: { name: 'AbortError', message: 'The lock manager was closed.' },
      });
    }
    // The cause is the error of core.
    await expect(held).rejects.toMatchObject({ cause: { code: 'LOCK_LOST', reason: 'closed' } });
    await expect(locks.request('a', () => 'never')).rejects.toThrow('The lock manager was closed.');
  });

  it('ends what waits and what is held with AbortError, and refuses the rest', async () => {
    const [one, other] = two();
    const held = failure((await hold(one, 'a')).requested);
    const waiting = failure(one.request('a', () => 'never'));
    await one.close();
    expect([await held, await waiting]).toEqual(['AbortError', 'AbortError']);
    expect(await failure(one.request('a', () => {}))).toBe('InvalidStateError');
    expect(await failure(one.query())).toBe('InvalidStateError');
    expect(await other.request('a', { ifAvailable: true }, (lock) => lock !== null)).toBe(true);
  });
});
