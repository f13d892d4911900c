import type { LockBackend } from '@locks/core/backend';
import { MemoryStore, memoryBackend } from '@locks/memory';
import { describe, expect, it } from 'vitest';
import { leaseOf } from '../src/index.ts';
import { changed } from './changed-backend.ts';
import { failure, hold } from './hold.ts';
import { make, two } from './lab.ts';

describe('steal', () => {
  it('rejects the stolen hold of the same process at once, on whichever client of the backend', async () => {
    const backend = memoryBackend();
    // Renewals are far away.
    const one = make(backend, { ttlMs: 600_000 });
    const other = make(backend, { ttlMs: 600_000 });
    const stolen = await hold(one, 'a');
    const outcome = failure(stolen.requested);
    expect(await other.request('a', { steal: true }, () => 'mine')).toBe('mine');
    expect(await outcome).toBe('AbortError');
  });

  it('rejects the stolen hold of another client at its next renewal, with the loss as the cause', async () => {
    const [one, other] = two(300);
    const stolen = await hold(one, 'a');
    const stealing = await hold(other, 'a', { steal: true });
    const error = (await stolen.requested.catch((reason: unknown) => reason)) as DOMException;
    expect([error.name, error instanceof DOMException]).toEqual(['AbortError', true]);
    expect(error.cause).toMatchObject({ code: 'LOCK_LOST', reason: 'taken-over' });
    expect(leaseOf(stolen.lock).signal.aborted).toBe(true);
    stealing.release('kept');
    expect(await stealing.requested).toBe('kept');
  });

  it('keeps the lock of the request that stole when the callback of the stolen hold ends', async () => {
    const [one, other] = two();
    const stolen = await hold(one, 'a');
    const outcome = failure(stolen.requested);
    const stealing = await hold(other, 'a', { steal: true });
    stolen.release();
    expect(await outcome).toBe('AbortError');
    expect((await one.query()).held).toEqual([{ name: 'a', mode: 'exclusive', clientId: other.clientId }]);
    stealing.release();
    await stealing.requested;
  });

  it('ignores a later rejection of the callback whose lock was stolen', async () => {
    const locks = make();
    let reject!: (reason: unknown) => void;
    const stolen = locks.request('a', () => new Promise((_, no) => (reject = no)));
    const outcome = failure(stolen);
    await locks.request('a', { steal: true }, () => {});
    reject(new Error('nobody listens'));
    expect(await outcome).toBe('AbortError');
  });

  it('does not end a hold that was granted after the steal', async () => {
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

  it('ends no hold of another name', async () => {
    const locks = make();
    const held = await hold(locks, 'b');
    await locks.request('a', { steal: true }, () => {});
    held.release('kept');
    expect(await held.requested).toBe('kept');
  });

  it('does not end a later steal whose grant arrived first', async () => {
    const store = new MemoryStore();
    const inner: LockBackend = memoryBackend(store);
    let deliver!: () => void;
    const delivered = new Promise<void>((resolve) => (deliver = resolve));
    let calls = 0;
    const backend = changed(
      store,
      {},
      {
        async attempt(request, enqueue, call) {
          const attempt = await inner.attempt(request, enqueue, call);
          // The reply to the first steal is late.
          if ((calls += 1) === 1) await delivered;
          return attempt;
        },
      },
    );
    const [one, other] = [make(backend, { ttlMs: 600_000 }), make(backend, { ttlMs: 600_000 })];
    const early = one.request('a', { steal: true }, () => 'early');
    const late = await hold(other, 'a', { steal: true });
    deliver();
    // The store says so at its release.
    expect(await failure(early)).toBe('AbortError');
    late.release('kept');
    expect(await late.requested).toBe('kept');
  });
});
