import { once } from 'node:events';
import { createLocks, type LockEvents, onLockEvent } from '@locks/core';
import { memoryTestBackend } from '@locks/memory';
import { expect, onTestFinished, test } from 'vitest';

function blocksTold(): LockEvents['locks:loop-blocked'][] {
  const told: LockEvents['locks:loop-blocked'][] = [];
  onTestFinished(onLockEvent('locks:loop-blocked', (event) => told.push(event)));
  return told;
}

function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

test('a block is told while its lease is still held, and the renewal after it says for how long', async () => {
  const told = blocksTold();
  const warnings: unknown[] = [];
  const listener = (warning: unknown): void => void warnings.push(warning);
  process.on('warning', listener);
  onTestFinished(() => void process.off('warning', listener));
  const locks = createLocks(memoryTestBackend(), { ttlMs: 1_500 });
  onTestFinished(() => locks.close());
  const lease = await locks.lock('a').acquire();
  const renewed = new Promise<LockEvents['locks:renewed']>((resolve) =>
    onTestFinished(onLockEvent('locks:renewed', resolve)),
  );
  block(1_200);
  const { blockedMs } = await renewed;
  expect(told).toMatchObject([{ backend: 'memory', ttlMs: 1_500, leases: 1, stack: undefined }]);
  expect(blockedMs).toBe(told[0]?.blockedMs);
  expect(blockedMs).toBeGreaterThan(650);
  expect(() => lease.assertValid()).not.toThrow();
  expect(warnings).toEqual([]);
  await lease.release();
});

test('a block that ends a lease is told before its loss, also where a read finds it first', async () => {
  const told = blocksTold();
  const locks = createLocks(memoryTestBackend(), { ttlMs: 300 });
  onTestFinished(() => locks.close());
  const lease = await locks.lock('a').acquire();
  const order: string[] = [];
  onTestFinished(onLockEvent('locks:loop-blocked', () => order.push('blocked')));
  onTestFinished(onLockEvent('locks:lost', () => order.push('lost')));
  const aborted = once(lease.signal, 'abort');
  block(500);
  expect(() => lease.assertValid()).toThrow(expect.objectContaining({ reason: 'expired' }));
  await aborted;
  expect(order).toEqual(['blocked', 'lost']);
  expect(told).toMatchObject([{ ttlMs: 300, leases: 1 }]);
});
