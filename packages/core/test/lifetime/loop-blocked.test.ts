import { expect, test } from 'vitest';
import { onLockEvent } from '../../src/events.ts';
import { listenTo, locksOn, pass, stallLoop, useFakeClock } from '../fixture.ts';
import { granted, held, scriptedBackend } from '../scripted-backend.ts';

test('a block of two thirds of the shortest ttl is told once, before the leases that it has ended (§8.5)', async () => {
  useFakeClock();
  const told: unknown[] = [];
  const locks = locksOn(scriptedBackend(), { ttlMs: 30_000 });
  const lease = await locks.lock('short').acquire({ ttlMs: 3_000 });
  const long = await locks.lock('long').acquire();
  const lost = listenTo('locks:lost');
  const stop = onLockEvent('locks:loop-blocked', (event) => told.push([event, lost.length]));
  stallLoop(4_000);
  await pass(100_000);
  stop();
  // The renewal of the short one was due after a second; timers run from then on.
  const event = { backend: 'scripted', blockedMs: 4_000, ttlMs: 3_000, leases: 2, stack: undefined };
  expect(told).toEqual([[event, 0]]);
  expect(lost).toMatchObject([{ name: 'short' }]);
  expect(lease.signal.reason).toMatchObject({ reason: 'expired', blockedMs: 4_000 });
  await long.release();
});

test.each([
  [900, 0],
  [1_100, 1],
])('a loop that is late by %i ms of a ttl of 3 s is told %i times', async (lateMs, times) => {
  useFakeClock();
  const told = listenTo('locks:loop-blocked');
  const lease = await locksOn(scriptedBackend(), { ttlMs: 3_000 }).lock('a').acquire();
  stallLoop(lateMs);
  await pass(20_000);
  expect(told).toHaveLength(times);
  await lease.release();
});

test('a block is told at a release that comes before every timer, and each block is told', async () => {
  useFakeClock();
  const told = listenTo('locks:loop-blocked');
  const locks = locksOn(scriptedBackend(), { ttlMs: 30_000 });
  const other = await locks.lock('other').acquire();
  await pass(9_000);
  await locks.lock('a').run(() => stallLoop(15_000));
  expect(told).toMatchObject([{ blockedMs: 14_000, ttlMs: 30_000, leases: 2 }]);
  await pass(9_000);
  expect(told).toHaveLength(1);
  stallLoop(15_000);
  await pass(9_000);
  expect(told).toHaveLength(2);
  await other.release();
});

test('the ttl of a lease that has ended counts no more', async () => {
  useFakeClock();
  const told = listenTo('locks:loop-blocked');
  const locks = locksOn(scriptedBackend(), { ttlMs: 30_000 });
  const lease = await locks.lock('long').acquire();
  await locks.lock('short').run(() => {}, { ttlMs: 300 });
  stallLoop(5_000);
  await pass(60_000);
  expect(told).toEqual([]);
  await lease.release();
});

test('a renewal says for how long the event loop had stood still when it was sent', async () => {
  useFakeClock();
  const renewed = listenTo('locks:renewed');
  const lease = await locksOn(scriptedBackend(), { ttlMs: 30_000 }).lock('a').acquire();
  await pass(17_000);
  stallLoop(5_000);
  await lease.renew();
  await pass(20_000);
  expect(renewed.map(({ blockedMs }) => blockedMs).slice(0, 2)).toEqual([0, 2_000]);
  expect(new Set(renewed.slice(2).map(({ blockedMs }) => blockedMs))).toEqual(new Set([0]));
  await lease.release();
});

test('a store that answers late is no block: neither for a loss, a renewal, nor the event', async () => {
  useFakeClock();
  const [told, renewed] = [listenTo('locks:loop-blocked'), listenTo('locks:renewed')];
  const late = <T>(answer: T, ms: number) => new Promise<T>((resolve) => setTimeout(resolve, ms, answer));
  const grants = scriptedBackend({
    attempt: (request, _enqueue, call) => late(granted(request, call), 6_500),
  });
  const renews = scriptedBackend({ renew: (items) => late(held(items), 5_000) });
  const acquiring = [grants, renews].map((backend) => locksOn(backend, { ttlMs: 9_000 }).lock('a').acquire());
  await pass(60_000);
  const leases = await Promise.all(acquiring);
  expect(told).toEqual([]);
  expect(renewed.length).toBeGreaterThan(10);
  expect(new Set(renewed.map(({ blockedMs }) => blockedMs))).toEqual(new Set([0]));
  for (const lease of leases) await lease.release();
});

test('a block in which nothing was held is not told of a lease that was granted right after it', async () => {
  useFakeClock();
  const told = listenTo('locks:loop-blocked');
  const locks = locksOn(scriptedBackend(), { ttlMs: 1_500 });
  await locks.lock('a').run(() => {});
  stallLoop(1_800);
  const lease = await locks.lock('b').acquire();
  await pass(500);
  expect(told).toEqual([]);
  await lease.release();
});
