import { expect, test, vi } from 'vitest';
import type { RenewalStatus } from '../../src/backend/types.ts';
import type { Lease } from '../../src/lease.ts';
import { listenTo, locksOn, pass, settled, stall, useFakeClock } from '../fixture.ts';
import { answerLater, granted, held, noAnswer, scriptedBackend } from '../scripted-backend.ts';

test('a lease is renewed every third of its ttl for as long as it is held', async () => {
  useFakeClock();
  const backend = scriptedBackend();
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  const start = performance.now();
  await pass(100_000);
  expect(backend.of('renew').map((sent) => sent.at - start)).toEqual(
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((third) => third * 10_000),
  );
  expect(lease.validForMs).toBeGreaterThan(19_000);
});

test('leases that are due about the same time are renewed in one call', async () => {
  useFakeClock();
  const backend = scriptedBackend();
  const locks = locksOn(backend, { ttlMs: 30_000 });
  for (let index = 0; index < 100; index += 1) {
    await locks.lock(`name-${index}`).acquire();
    await pass(20);
  }
  await pass(8_001);
  expect(backend.of('renew').map((sent) => sent.ids.length)).toEqual([100]);
  expect(new Set(backend.of('renew')[0]?.ids).size).toBe(100);
});

test('each lease in a batch is renewed with its own ttl', async () => {
  useFakeClock();
  const ttls: number[][] = [];
  const backend = scriptedBackend({
    renew: (items) => {
      ttls.push(items.map((item) => item.ttlMs));
      return Promise.resolve(held(items));
    },
  });
  const locks = locksOn(backend);
  await locks.lock('short', { ttlMs: 30_000 }).acquire();
  await locks.lock('long', { ttlMs: 33_000 }).acquire();
  await pass(10_000);
  expect(ttls).toEqual([[30_000, 33_000]]);
});

test('10 000 leases cost one timer and one call a round', async () => {
  await locksOn(scriptedBackend(), { ttlMs: 500 }).lock('left by another test').acquire();
  useFakeClock();
  const setTimer = vi.spyOn(globalThis, 'setTimeout');
  const backend = scriptedBackend();
  const locks = locksOn(backend, { ttlMs: 30_000 });
  const leases: Lease[] = [];
  for (let index = 0; index < 10_000; index += 1) leases.push(await locks.lock(`name-${index}`).acquire());
  // One for the leases and one for the calls' time limits.
  expect(setTimer).toHaveBeenCalledTimes(2);
  await pass(30_000);
  expect(backend.of('renew').map((sent) => sent.ids.length)).toEqual([10_000, 10_000, 10_000]);
  // Time limits of calls that earlier tests made may be set anew meanwhile, some dozens.
  expect(setTimer.mock.calls.length).toBeLessThan(1_000);
  for (const { value } of setTimer.mock.results) expect((value as NodeJS.Timeout).hasRef()).toBe(false);
  await Promise.all(leases.map((lease) => lease.release()));
  await pass(60_000);
  expect(vi.getTimerCount()).toBe(0);
});

test('nothing is renewed after the release', async () => {
  useFakeClock();
  const backend = scriptedBackend();
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  await pass(9_999);
  const released = lease.release();
  await pass(60_000);
  await released;
  expect(backend.of('renew')).toEqual([]);
});

test.each<RenewalStatus>([
  { status: 'lost', reason: 'force-released' },
  { status: 'unknown', error: new Error('cut') },
  { status: 'held' },
])(
  'the answer $status to a renewal that was under way at the release changes nothing',
  async (renewalStatus) => {
    useFakeClock();
    const [lost, failed] = [listenTo('locks:lost'), listenTo('locks:renewal-failed')];
    const { answer, give } = answerLater<readonly RenewalStatus[]>();
    const backend = scriptedBackend({ renew: () => answer });
    const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
    const { signal } = lease;
    await pass(10_000);
    await lease.release();
    give([renewalStatus]);
    await pass(60_000);
    expect(signal.aborted).toBe(false);
    expect([...lost, ...failed].filter(({ name }) => name === 'a')).toEqual([]);
    expect(backend.of('renew')).toHaveLength(1);
  },
);

test('a lease that another one’s loss releases in the same round is not renewed', async () => {
  useFakeClock();
  const backend = scriptedBackend();
  const locks = locksOn(backend);
  const kept = await locks.lock('kept', { ttlMs: 30_000 }).acquire();
  const doomed = await locks.lock('doomed', { ttlMs: 10_000, renewal: 'manual' }).acquire();
  doomed.signal.addEventListener('abort', () => void kept.release());
  await pass(60_000);
  expect(backend.of('release').map((sent) => sent.ids[0])).toEqual([kept.acquisitionId]);
  expect(backend.of('renew')).toEqual([]);
});

test('with manual renewal nothing is renewed, and the lease ends by time', async () => {
  useFakeClock();
  const backend = scriptedBackend();
  const lease = await locksOn(backend, { ttlMs: 30_000, renewal: 'manual' }).lock('a').acquire();
  const { signal } = lease;
  await pass(30_000);
  expect(backend.of('renew')).toEqual([]);
  expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
});

test('a grant that ends before its ttl is renewed at a third of what the store keeps it for', async () => {
  useFakeClock();
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) => Promise.resolve(granted(request, call, { validForMs: 24_000 })),
  });
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  expect(lease.validForMs).toBe(24_000 - 242);
  await pass(8_000);
  expect(backend.of('renew')).toMatchObject([{ ttlMs: 30_000 }]);
  expect(lease.validForMs).toBeGreaterThan(29_000);
});

test('renewal stops at maxHoldMs, and the lease ends by time after it', async () => {
  useFakeClock();
  const backend = scriptedBackend();
  const lease = await locksOn(backend, { ttlMs: 30_000, maxHoldMs: 25_000 }).lock('a').acquire();
  const start = performance.now();
  await pass(120_000);
  expect(backend.of('renew').map((sent) => sent.at - start)).toEqual([10_000, 20_000]);
  expect(lease.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
});

test('a hold past twice its ttl is reported once, and never where maxHoldMs was given', async () => {
  useFakeClock();
  const slow = listenTo('locks:slow-hold');
  const locks = locksOn(scriptedBackend(), { ttlMs: 30_000 });
  const lease = await locks.lock('slow').acquire();
  await locks.lock('limited').acquire({ maxHoldMs: 1_000_000 });
  await pass(59_999);
  expect(slow).toEqual([]);
  await pass(300_000);
  expect(slow).toMatchObject([
    { name: 'slow', acquisitionId: lease.acquisitionId, ttlMs: 30_000, heldMs: 60_000 },
  ]);
});

test('a loop that stalled past the end loses the lease and does not renew it', async () => {
  useFakeClock();
  const backend = scriptedBackend();
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  const { signal } = lease;
  await pass(9_000);
  stall(40_000);
  // The first timer phase after the stall.
  await pass(1_000);
  expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
  expect(backend.of('renew')).toEqual([]);
});

test('a lease read after a stall shows the loss before any timer ran', async () => {
  useFakeClock();
  const lease = await locksOn(scriptedBackend(), { ttlMs: 30_000 }).lock('a').acquire();
  const { signal } = lease;
  stall(40_000);
  expect(lease.validForMs).toBe(0);
  expect(signal.aborted).toBe(true);
  expect(() => lease.assertValid()).toThrow(
    expect.objectContaining({ code: 'LOCK_LOST', reason: 'expired' }),
  );
});

test('after a stall a stored signal aborts before another acquire of the process is granted, over another manager too', async () => {
  useFakeClock();
  const [one, other] = [locksOn(scriptedBackend(), { ttlMs: 30_000 }), locksOn(scriptedBackend())];
  const { signal } = await one.lock('a').acquire();
  const { signal: longer } = await one.lock('b', { ttlMs: 60_000 }).acquire();
  stall(40_000);
  const acquired = await other.lock('a').tryAcquire();
  expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
  expect(longer.aborted).toBe(false);
  await acquired?.release();
});

test('a renewal that hangs ends with the lease: nothing is sent for a lost one', async () => {
  useFakeClock();
  const backend = scriptedBackend({ renew: noAnswer });
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  await pass(30_000);
  expect(lease.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'unconfirmed' });
  const before = backend.of('renew').length;
  await pass(60_000);
  await settled();
  expect(backend.of('renew')).toHaveLength(before);
});
