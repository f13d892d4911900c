import { createLocks } from '@locks/core';
import { expect, test } from 'vitest';
import { memoryTestBackend } from '../src/index.ts';

function testLocks(options?: Parameters<typeof createLocks>[1]) {
  const memory = memoryTestBackend();
  return { memory, locks: createLocks(memory, options) };
}

test('lose ends the lease at once, with the reason, and the next one in the queue enters after the loss was reported', async () => {
  const { memory, locks } = testLocks();
  const lease = await locks.lock('a').acquire();
  const { signal } = lease;
  const order: string[] = [];
  signal.addEventListener('abort', () => order.push('lost'));
  const next = locks
    .lock('a')
    .acquire()
    .then((entered) => {
      order.push('entered');
      return entered;
    });
  await locks.inspect('a');
  expect(memory.lose('a', 'session-lost')).toBe(1);
  expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'session-lost' });
  expect(() => lease.assertValid()).toThrow(expect.objectContaining({ code: 'LOCK_LOST' }) as Error);
  await (await next).release();
  expect(order).toEqual(['lost', 'entered']);
  expect(memory.lose('a')).toBe(0);
});

test('lose ends a lease that was handed off, a set, and every share', async () => {
  const { memory, locks } = testLocks();
  const first = await locks.lock('a').acquire();
  const waiting = locks.lock('a').acquire();
  await locks.inspect('a');
  await first.release();
  const handed = await waiting;
  memory.lose('a');
  expect(handed.signal.reason).toMatchObject({ reason: 'taken-over' });
  const set = await locks.all([locks.lock('b'), locks.lock('c')]).acquire();
  memory.lose('c');
  expect(set.signal.aborted).toBe(true);
  const { read } = locks.readWriteLock('d');
  const shares = [await read.acquire(), await read.acquire()];
  expect(memory.lose('d')).toBe(2);
  expect(shares.map(({ signal }) => signal.aborted)).toEqual([true, true]);
});

test('a refused name is contended, and shown as held by somebody else, until that ends', async () => {
  const { memory, locks } = testLocks();
  const held = await locks.lock('a').acquire();
  const allow = memory.refuse('a');
  held.assertValid();
  await held.release();
  const lock = locks.lock('a');
  expect(await lock.tryAcquire()).toBeUndefined();
  expect(await locks.isLocked('a')).toBe(true);
  expect(await locks.all([lock, locks.lock('b')]).tryAcquire()).toBeUndefined();
  await expect(lock.acquire({ waitMs: 30 })).rejects.toMatchObject({
    code: 'LOCK_TIMEOUT',
    message: expect.stringContaining('somebody else') as string,
  });
  const waiting = lock.acquire({ waitMs: 60_000 });
  await expect(lock.acquire({ signal: AbortSignal.timeout(20) })).rejects.toMatchObject({
    name: 'TimeoutError',
  });
  allow();
  await (await waiting).release();
  expect(await locks.isLocked('a')).toBe(false);
});

test('while the store fails, acquires and ping reject with LOCK_BACKEND, and a lease is lost at its end', async () => {
  const { memory, locks } = testLocks({ ttlMs: 300 });
  const lease = await locks.lock('a').acquire();
  const { signal } = lease;
  const mend = memory.fail('a');
  await expect(locks.lock('a').acquire({ waitMs: 30 })).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
  await (await locks.lock('b').acquire()).release();
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
  expect(signal.reason).toMatchObject({ reason: 'unconfirmed' });
  mend();
  mend();
  await (await locks.lock('a').acquire()).release();
  const mendAll = memory.fail();
  await expect(locks.ping()).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
  mendAll();
  await locks.ping();
});

test('advance moves the time of leases: renewed when it is short, lost when it is over, without a moment between', async () => {
  const { memory, locks } = testLocks({ ttlMs: 30_000 });
  const lease = await locks.lock('a').acquire();
  const { signal } = lease;
  memory.advance(15_000);
  expect(signal.aborted).toBe(false);
  await locks.inspect('a');
  expect(lease.validForMs).toBeGreaterThan(29_000);
  const waiting = locks.lock('a').acquire({ waitMs: 60_000 });
  await locks.inspect('a');
  memory.advance(31_000);
  expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
  await (await waiting).release();
});

test('advance ends waits whose time is over', async () => {
  const { memory, locks } = testLocks();
  const lease = await locks.lock('a').acquire({ ttlMs: 600_000 });
  const waiting = locks.lock('a').acquire({ waitMs: 20_000 });
  await locks.inspect('a');
  memory.advance(21_000);
  await expect(waiting).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  await lease.release();
  expect(() => memory.advance(-1)).toThrow(
    expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }) as Error,
  );
});

test('without a fault it locks as the memory backend does, to the end', async () => {
  const { locks } = testLocks();
  const slots = locks.semaphore('a', 2);
  const permits = [await slots.acquire(), await slots.acquire()];
  await slots.resize(3);
  for (const permit of permits) await permit.release();
  const { write } = locks.readWriteLock('b');
  const writer = await write.acquire();
  await writer.downgrade();
  const names: string[] = [];
  for await (const { name } of locks.list()) names.push(name);
  expect(names).toEqual(['b']);
  expect(await locks.forceRelease('b')).toHaveLength(1);
  await locks.close();
  await expect(locks.inspect('b')).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
});
