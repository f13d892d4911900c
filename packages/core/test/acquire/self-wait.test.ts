import { expect, test } from 'vitest';
import type { LockBackend } from '../../src/backend/types.ts';
import type { Lease } from '../../src/lease.ts';
import { locksOn, rejectionOf } from '../fixture.ts';
import { capabilities, contended, granted, noAnswer, scriptedBackend } from '../scripted-backend.ts';

const ENDLESS = { waitMs: Number.POSITIVE_INFINITY };

/** A store in which the first acquisition of each name holds, and all others wait. */
function busyStore(more: Partial<LockBackend> = {}) {
  const held = new Set<string>();
  return scriptedBackend({
    capabilities: { ...capabilities, modes: ['exclusive', 'shared', 'permit'] },
    resize: () => Promise.resolve({ status: 'set' }),
    downgrade: () => Promise.resolve({ status: 'held' }),
    attempt: async (request, _enqueue, call) => {
      if (held.has(request.resource)) return contended;
      held.add(request.resource);
      return granted(request, call);
    },
    awaitTurn: () => noAnswer(),
    ...more,
  });
}

test('code inside run that waits for the same lock is refused at once, and leaves the queue', async () => {
  const backend = busyStore();
  const lock = locksOn(backend).lock('a', ENDLESS);
  await lock.run(async () => {
    expect(await rejectionOf(lock.acquire())).toBe('LOCK_REENTRANT');
    expect(backend.of('abandon')).toHaveLength(1);
    await expect(lock.run(() => {})).rejects.toThrow(/within.*reentrant: true.*detached/);
  });
});

test('also where other locks, timers and awaits lie in between', async () => {
  const locks = locksOn(busyStore(), ENDLESS);
  await locks.lock('a').run(() =>
    locks.lock('b').run(async () => {
      await new Promise((resolve) => setTimeout(resolve, 1));
      expect(await rejectionOf(locks.lock('a').acquire())).toBe('LOCK_REENTRANT');
    }),
  );
});

test('a reader that wants to write is refused, and another reader is not', async () => {
  const backend = busyStore();
  const { read, write } = locksOn(backend, { waitMs: 50 }).readWriteLock('a');
  await read.run(async () => {
    await expect(write.acquire()).rejects.toThrow('never upgraded');
    expect(await rejectionOf(read.acquire())).toBe('LOCK_TIMEOUT');
  });
});

test('a reader waits where a downgrade may have made the lease around it shared', async () => {
  const downgrade = () => Promise.reject(new Error('lost'));
  const { read, write } = locksOn(busyStore({ downgrade, isRetryable: () => false }), {
    waitMs: 50,
  }).readWriteLock('a');
  await write.run(async (lease) => {
    expect(await rejectionOf(read.acquire())).toBe('LOCK_REENTRANT');
    await expect(lease.downgrade()).rejects.toThrow();
    expect(await rejectionOf(read.acquire())).toBe('LOCK_TIMEOUT');
  });
});

test('permits that the code around holds are counted', async () => {
  const slots = locksOn(busyStore(), { waitMs: 50 }).semaphore('a', 5);
  await slots.run(
    async () => {
      await expect(slots.acquire({ weight: 3 })).rejects.toThrow('as many permits at once');
      expect(await rejectionOf(slots.acquire({ weight: 2 }))).toBe('LOCK_TIMEOUT');
    },
    { weight: 3 },
  );
});

test.each<[string, (lease: Lease) => unknown]>([
  ['after a release', (lease) => lease.release()],
  ['in locks.detached', () => undefined],
])('code inside run waits as any other %s', async (where, before) => {
  const locks = locksOn(busyStore(), { waitMs: 50 });
  await locks.lock('a').run(async (lease) => {
    await before(lease);
    const acquire = () => locks.lock('a').acquire();
    const waiting = where === 'in locks.detached' ? locks.detached(acquire) : acquire();
    expect(await rejectionOf(waiting)).toBe('LOCK_TIMEOUT');
  });
});

test('a single attempt is answered with what the store says', async () => {
  const lock = locksOn(busyStore()).lock('a');
  await lock.run(async () => {
    expect(await lock.tryAcquire()).toBeUndefined();
    expect(await rejectionOf(lock.acquire({ waitMs: 0 }))).toBe('LOCK_CONTENDED');
  });
});

test('the timeout of another call of the same process blames no nesting, and keeps the hint on the ttl', async () => {
  const held = { acquisitionId: 'x', mode: { kind: 'exclusive' }, expiresInMs: 30_000 } as const;
  const inspect = async (resource: string) => ({ name: resource, holders: [held], waiters: [] });
  const locks = locksOn(busyStore({ inspect }), { waitMs: 20, ttlMs: 30_000 });
  await locks.lock('a').acquire();
  const error = locks.lock('a').acquire();
  await expect(error).rejects.toThrow(
    /^(?!.*reentrant).*Another call of this process.*waitMs 20, ttlMs 30000/,
  );
});
