import type { LockBackend } from '@locks/core';
import { MemoryStore, memoryBackend } from '@locks/memory';
import { describe, expect, it } from 'vitest';
import { leaseOf } from '../src/index.ts';
import { changed } from './changed-backend.ts';
import { failure, hold } from './hold.ts';
import { make, two } from './lab.ts';

describe('steal', () => {
  it('tells the robbed of the same process at once, on whichever client of the backend', async () => {
    const backend = memoryBackend();
    // Renewals are far away.
    const one = make(backend, { ttlMs: 600_000 });
    const other = make(backend, { ttlMs: 600_000 });
    const robbed = await hold(one, 'a');
    const outcome = failure(robbed.requested);
    expect(await other.request('a', { steal: true }, () => 'mine')).toBe('mine');
    expect(await outcome).toBe('AbortError');
  });

  it('tells the robbed of another client at its next renewal, with the loss as the cause', async () => {
    const [one, other] = two(300);
    const robbed = await hold(one, 'a');
    const thief = await hold(other, 'a', { steal: true });
    const error = (await robbed.requested.catch((reason: unknown) => reason)) as DOMException;
    expect([error.name, error instanceof DOMException]).toEqual(['AbortError', true]);
    expect(error.cause).toMatchObject({ code: 'LOCK_LOST', reason: 'taken-over' });
    expect(leaseOf(robbed.lock).signal.aborted).toBe(true);
    thief.release('kept');
    expect(await thief.requested).toBe('kept');
  });

  it('leaves the thief alone when the robbed callback ends', async () => {
    const [one, other] = two();
    const robbed = await hold(one, 'a');
    const outcome = failure(robbed.requested);
    const thief = await hold(other, 'a', { steal: true });
    robbed.release();
    expect(await outcome).toBe('AbortError');
    expect((await one.query()).held).toEqual([{ name: 'a', mode: 'exclusive', clientId: other.clientId }]);
    thief.release();
    await thief.requested;
  });

  it('swallows what a robbed callback does later', async () => {
    const locks = make();
    let reject!: (reason: unknown) => void;
    const robbed = locks.request('a', () => new Promise((_, no) => (reject = no)));
    const outcome = failure(robbed);
    await locks.request('a', { steal: true }, () => {});
    reject(new Error('nobody listens'));
    expect(await outcome).toBe('AbortError');
  });

  it('does not rob whoever came after the thief', async () => {
    const locks = make();
    const outcomes = [1, 2, 3, 4].map((number) =>
      failure(
        locks.request('a', { steal: true }, () => (number === 4 ? 'last' : new Promise<never>(() => {}))),
      ),
    );
    expect(await Promise.all(outcomes)).toEqual([
      'AbortError',
      'AbortError',
      'AbortError',
      { resolved: 'last' },
    ]);
  });

  it('robs nobody of another name', async () => {
    const locks = make();
    const held = await hold(locks, 'b');
    await locks.request('a', { steal: true }, () => {});
    held.release('kept');
    expect(await held.requested).toBe('kept');
  });

  it('does not rob a later thief whose grant was heard of first', async () => {
    const store = new MemoryStore();
    const inner: LockBackend = memoryBackend(store);
    let hear!: () => void;
    const heard = new Promise<void>((resolve) => (hear = resolve));
    let calls = 0;
    const backend = changed(
      store,
      {},
      {
        async attempt(request, enqueue, call) {
          const attempt = await inner.attempt(request, enqueue, call);
          // The reply to the first thief is late.
          if ((calls += 1) === 1) await heard;
          return attempt;
        },
      },
    );
    const [one, other] = [make(backend, { ttlMs: 600_000 }), make(backend, { ttlMs: 600_000 })];
    const early = one.request('a', { steal: true }, () => 'early');
    const late = await hold(other, 'a', { steal: true });
    hear();
    // The store says so at its release.
    expect(await failure(early)).toBe('AbortError');
    late.release('kept');
    expect(await late.requested).toBe('kept');
  });
});
