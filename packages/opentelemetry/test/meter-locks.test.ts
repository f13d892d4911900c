import { createLocks, type FencedLockManager } from '@locks/core';
import { memoryTestBackend } from '@locks/memory';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { meterLocks } from '../src/index.ts';
import { CollectedMetrics } from './collected.ts';
import { inCircle } from './in-circle.ts';

const series = { 'lock.backend': 'memory', 'lock.mode': 'exclusive' };
let metrics: CollectedMetrics;
let stop: () => void;
const managers: FencedLockManager[] = [];

beforeEach(() => {
  metrics = new CollectedMetrics();
  stop = meterLocks({ meterProvider: metrics.provider });
});
afterEach(async () => {
  await Promise.all(managers.splice(0).map((locks) => locks.close()));
  stop();
  await metrics[Symbol.asyncDispose]();
});

function locksOn(backend = memoryTestBackend(), options = {}): FencedLockManager {
  const locks = createLocks(backend, options);
  managers.push(locks);
  return locks;
}

test('an acquire and its release are counted, with their durations in seconds', async () => {
  const lock = locksOn().lock('sku:42');
  const lease = await lock.acquire();
  expect(await metrics.value('lock.held', series)).toBe(1);
  await vi.waitFor(() => expect(lease.validForMs).toBeLessThan(29_640));
  await lease.release();
  expect(await metrics.value('lock.held', series)).toBe(0);
  const acquired = await metrics.histogram('lock.acquire.duration', {
    ...series,
    'lock.outcome': 'acquired',
  });
  expect(acquired).toMatchObject({ count: 1 });
  expect(acquired?.sum).toBeLessThan(5);
  const held = await metrics.histogram('lock.hold.duration', series);
  expect(held).toMatchObject({ count: 1 });
  expect(held?.sum).toBeGreaterThan(0.02);
  expect(held?.sum).toBeLessThan(10);
});

test.for([1, 63, 64, 65, 200])(
  '%i pairs are counted, whether metrics are collected or stopped first',
  async (pairs) => {
    const lock = locksOn().lock('sku:42');
    for (let pair = 0; pair < pairs; pair += 1) await lock.run(() => {});
    expect(await metrics.histogram('lock.acquire.duration')).toMatchObject({ count: pairs });
    for (let pair = 0; pair < pairs; pair += 1) await lock.run(() => {});
    stop();
    expect(await metrics.histogram('lock.acquire.duration')).toMatchObject({ count: 2 * pairs });
    expect(await metrics.histogram('lock.hold.duration')).toMatchObject({ count: 2 * pairs });
  },
);

test('no name of a lock is exported, and a function maps names to groups', async () => {
  const locks = locksOn();
  await locks.lock('secret:7').run(() => {});
  expect(await metrics.text()).not.toContain('secret');
  stop();
  stop = meterLocks({
    meterProvider: metrics.provider,
    groupOf: (name) => (name === 'odd' ? undefined : name.split(':', 1)[0]),
  });
  await locks.lock('order:7').run(() => {});
  await locks.lock('order:8').run(() => {});
  await locks.lock('odd').run(() => {});
  expect(await metrics.histogram('lock.acquire.duration', { 'lock.group': 'order' })).toMatchObject({
    count: 2,
  });
  const exported = await metrics.attributesOf('lock.held');
  expect(exported).toHaveLength(2);
  expect(exported).toEqual(expect.arrayContaining([{ ...series, 'lock.group': 'order' }, series]));
});

test('a function for groups that throws leaves the lock as it is', async () => {
  stop();
  stop = meterLocks({
    meterProvider: metrics.provider,
    groupOf: () => {
      throw new Error('no such name');
    },
  });
  expect(
    await locksOn()
      .lock('a')
      .run(() => 'worked'),
  ).toBe('worked');
  expect(await metrics.value('lock.held', series)).toBe(0);
  expect(await metrics.histogram('lock.hold.duration', series)).toMatchObject({ count: 1 });
});

test('waiting acquires are counted until they are granted or give up', async () => {
  const locks = locksOn();
  const lease = await locks.lock('a').acquire();
  const abort = new AbortController();
  const waiting = [
    locks.lock('a').acquire({ waitMs: 60_000, signal: abort.signal }),
    locks.lock('a').acquire({ waitMs: 60_000 }),
  ] as const;
  await vi.waitFor(async () => expect(await metrics.value('lock.waiting', series)).toBe(2));
  abort.abort(new DOMException('stopped', 'AbortError'));
  await expect(waiting[0]).rejects.toThrow('stopped');
  expect(await metrics.value('lock.waiting', series)).toBe(1);
  await lease.release();
  await (await waiting[1]).release();
  expect(await metrics.value('lock.waiting', series)).toBe(0);
  expect(
    await metrics.histogram('lock.acquire.duration', {
      ...series,
      'lock.outcome': 'aborted',
      'error.type': 'AbortError',
    }),
  ).toMatchObject({ count: 1 });
});

test('the outcomes of an acquire are told apart', async () => {
  const backend = memoryTestBackend();
  const locks = locksOn(backend);
  const lease = await locks.lock('a').acquire();
  expect(await locks.lock('a').tryAcquire()).toBeUndefined();
  await expect(locks.lock('a').acquire({ waitMs: 10 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  const closing = locksOn();
  const holding = await closing.lock('a').acquire();
  const closed = closing.lock('a').acquire({ waitMs: 60_000 });
  const refused = expect(closed).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
  await vi.waitFor(async () => expect(await metrics.value('lock.waiting', series)).toBe(1));
  await closing.close();
  await refused;
  expect(holding.validForMs).toBe(0);
  await lease.release();
  const repair = backend.fail();
  await expect(locks.lock('a').tryAcquire()).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
  repair();
  const counted = await Promise.all(
    [
      { 'lock.outcome': 'contended' },
      { 'lock.outcome': 'timeout', 'error.type': 'LOCK_TIMEOUT' },
      { 'lock.outcome': 'closed', 'error.type': 'LOCK_CLOSED' },
      { 'lock.outcome': 'error', 'error.type': 'LOCK_BACKEND' },
    ].map(async (attributes) => (await metrics.histogram('lock.acquire.duration', attributes))?.count ?? 0),
  );
  expect(counted).toEqual([1, 1, 1, 1]);
  expect(await metrics.value('lock.waiting', series)).toBe(0);
});

test('the gap of a hand-off is measured once for each, and only between neighbours', async () => {
  const locks = locksOn();
  const lease = await locks.lock('a').acquire();
  const next = locks.lock('a').acquire({ waitMs: 60_000 });
  await vi.waitFor(async () => expect(await metrics.value('lock.waiting', series)).toBe(1));
  await lease.release();
  await (await next).release();
  await locks.lock('a').run(() => {});
  const gap = await metrics.histogram('lock.handoff.gap', series);
  expect(gap).toMatchObject({ count: 1 });
  expect(gap?.sum).toBeLessThan(5);
});

test('a lost lease is counted with its reason, and held no more', async () => {
  const locks = locksOn(memoryTestBackend(), { renewal: 'manual', ttlMs: 50 });
  const lease = await locks.lock('a').acquire();
  await vi.waitFor(() => expect(lease.validForMs).toBe(0));
  expect(await metrics.value('lock.lost', { ...series, 'lock.reason': 'expired' })).toBe(1);
  expect(await metrics.value('lock.held', series)).toBe(0);
  expect(await metrics.histogram('lock.hold.duration', series)).toMatchObject({ count: 1 });
});

test('renewals are counted, with the share of the ttl that was left', async () => {
  const backend = memoryTestBackend();
  const locks = locksOn(backend, { ttlMs: 300 });
  const lease = await locks.lock('a').acquire();
  await vi.waitFor(async () =>
    expect(await metrics.value('lock.renewals', { ...series, 'lock.outcome': 'renewed' })).toBeGreaterThan(1),
  );
  const margin = await metrics.histogram('lock.renewal.margin', series);
  const average = (margin?.sum ?? 0) / (margin?.count ?? 1);
  expect(average).toBeGreaterThan(0.05);
  expect(average).toBeLessThan(0.8);
  const repair = backend.fail();
  await vi.waitFor(async () =>
    expect(await metrics.value('lock.renewals', { ...series, 'lock.outcome': 'failed' })).toBeGreaterThan(0),
  );
  repair();
  await lease[Symbol.asyncDispose]();
});

test('a block of the event loop is measured once, in seconds', async () => {
  const lease = await locksOn(undefined, { ttlMs: 300 }).lock('a').acquire();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
  await expect(lease.release()).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
  const blocked = await metrics.histogram('lock.loop.block.duration', { 'lock.backend': 'memory' });
  expect(blocked).toMatchObject({ count: 1 });
  expect(blocked?.sum).toBeGreaterThan(0.28);
  expect(blocked?.sum).toBeLessThan(5);
});

test('a renewal that is asked for with another ttl has a margin of its own ttl', async () => {
  const lease = await locksOn().lock('a').acquire();
  await lease.renew(2_000);
  await lease.renew(60_000);
  const margin = await metrics.histogram('lock.renewal.margin', series);
  expect(margin).toMatchObject({ count: 2 });
  expect(margin?.min).toBeGreaterThan(0.7);
  await lease.release();
});

test('a release without an answer, of whatever kind, is counted once and ends the hold', async () => {
  const backend = memoryTestBackend();
  const locks = locksOn(backend, { ttlMs: 400 });
  const lease = await locks.lock('a').acquire();
  const running = locks.lock('b').run(() => {
    repair = backend.fail();
    return 'worked';
  });
  let repair = (): void => {};
  expect(await running).toBe('worked');
  await expect(lease.release()).rejects.toMatchObject({ name: 'LockError' });
  repair();
  expect(await metrics.value('lock.held', series)).toBe(0);
  const failures = await metrics.value('lock.release.failures', { ...series, 'error.type': 'LOCK_BACKEND' });
  const lost = await metrics.value('lock.lost', series);
  expect(failures).toBeGreaterThan(0);
  expect(failures + lost).toBe(2);
});

test('a release in the last part of the validity is counted as late', async () => {
  const locks = locksOn(memoryTestBackend(), { renewal: 'manual', ttlMs: 2_000 });
  const [late, early] = [await locks.lock('a').acquire(), await locks.lock('b').acquire()];
  await early.release();
  await vi.waitFor(() => expect(late.validForMs).toBeLessThan(390), { timeout: 10_000, interval: 5 });
  await late.release();
  expect(await metrics.value('lock.release.late', series)).toBe(1);
});

test('leases of before are left out, and nothing is measured after the end', async () => {
  const locks = locksOn();
  stop();
  const lease = await locks.lock('a').acquire();
  const waiting = locks.lock('a').acquire({ waitMs: 60_000 });
  await vi.waitFor(async () => expect((await locks.inspect('a')).waiters).toHaveLength(1));
  stop = meterLocks({ meterProvider: metrics.provider });
  await lease.release();
  await (await waiting).release();
  expect(await metrics.value('lock.held')).toBe(0);
  expect(await metrics.value('lock.waiting')).toBe(0);
  stop();
  await locks.lock('a').run(() => {});
  expect(await metrics.histogram('lock.acquire.duration')).toMatchObject({ count: 1 });
});

test('a lease keeps its series after a downgrade', async () => {
  const lease = await locksOn().readWriteLock('a').write.acquire();
  await lease.downgrade();
  await lease.release();
  expect(await metrics.value('lock.held', { 'lock.mode': 'exclusive' })).toBe(0);
  expect(await metrics.value('lock.held', { 'lock.mode': 'shared' })).toBe(0);
});

test('durations are histograms in seconds, with boundaries that fit locks', async () => {
  const locks = locksOn();
  const lease = await locks.lock('a').acquire();
  await lease.renew();
  await lease.release();
  const described = await metrics.units();
  for (const name of ['lock.acquire.duration', 'lock.hold.duration']) {
    expect(described.get(name)).toBe('s');
    expect((await metrics.histogram(name))?.buckets.boundaries.length).toBeGreaterThan(10);
  }
  expect((await metrics.histogram('lock.renewal.margin'))?.buckets.boundaries.at(-1)).toBe(1);
});

test.each([{ meterProvider: {} }, { groupOf: 'order' }, { prefix: 'a' }, []])(
  'options that mean nothing are refused: %o',
  (options) => {
    expect(() => meterLocks(options as object)).toThrow(
      expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
    );
  },
);

test('a deadlock is counted, and is no failure of the store', async () => {
  const locks = locksOn();
  await inCircle(locks);
  expect(await metrics.value('lock.deadlocks', series)).toBe(1);
  const ended = { 'lock.outcome': 'deadlock', 'error.type': 'LOCK_DEADLOCK' };
  expect(await metrics.histogram('lock.acquire.duration', ended)).toMatchObject({ count: 1 });
  expect(await metrics.histogram('lock.acquire.duration', { 'lock.outcome': 'error' })).toBe(undefined);
});
