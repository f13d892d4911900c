import { expect, test, vi } from 'vitest';
import { listenTo, locksOn, pass, rejectionOf, settled, stall, useFakeClock } from '../fixture.ts';
import {
  answerLater,
  contended,
  grant,
  granted,
  held,
  noAnswer,
  scriptedBackend,
} from '../scripted-backend.ts';

test('a renewal counts from when it was sent, not from when it was answered', async () => {
  useFakeClock();
  const { answer, give } = answerLater<void>();
  const backend = scriptedBackend({ renew: (items) => answer.then(() => held(items)) });
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  await pass(10_000);
  await pass(3_000);
  give();
  await settled();
  expect(lease.validForMs).toBe(30_000 - 302 - 3_000);
});

test('a grant counts from when the backend says that its request was sent', async () => {
  useFakeClock();
  const { answer, give } = answerLater<void>();
  const backend = scriptedBackend({
    attempt: async (asked, _enqueue, call) => {
      const countedFrom = call.now();
      await answer;
      return granted(asked, call, { countedFrom });
    },
  });
  const acquiring = locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  await pass(4_000);
  give();
  expect((await acquiring).validForMs).toBe(30_000 - 302 - 4_000);
});

test('a shorter renewal counts from its sending, whether or not it is answered', async () => {
  useFakeClock();
  const lease = await locksOn(scriptedBackend({ renew: noAnswer }), { ttlMs: 30_000, renewal: 'manual' })
    .lock('a')
    .acquire();
  const { signal } = lease;
  const renewing = lease.renew(1_000).catch((error: unknown) => error);
  expect(lease.validForMs).toBe(1_000 - 12);
  await pass(988);
  expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'unconfirmed' });
  expect(await renewing).toMatchObject({ backend: 'scripted' });
});

test('the late answer to a renewal before the shorter one does not extend the lease', async () => {
  useFakeClock();
  const { answer, give } = answerLater<void>();
  let renewals = 0;
  const backend = scriptedBackend({
    renew: (items) => {
      renewals += 1;
      return renewals === 1 ? answer.then(() => held(items)) : Promise.resolve(held(items));
    },
  });
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  await pass(10_000);
  await lease.renew(2_000);
  expect(lease.validForMs).toBe(2_000 - 22);
  give();
  await settled();
  expect(lease.validForMs).toBe(2_000 - 22);
});

test('a renewal with another ttl also holds for the automatic ones after it', async () => {
  useFakeClock();
  const backend = scriptedBackend();
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  await lease.renew(6_000);
  expect(lease.validForMs).toBe(6_000 - 62);
  await pass(2_000);
  expect(backend.of('renew').map((sent) => sent.ttlMs)).toEqual([6_000, 6_000]);
  await lease.renew(60_000);
  expect(lease.validForMs).toBe(60_000 - 602);
});

test('a renewal that finds the lease lost ends it and rejects with the loss', async () => {
  useFakeClock();
  const backend = scriptedBackend({
    renew: () => Promise.resolve([{ status: 'lost', reason: 'taken-over' }]),
  });
  const lease = await locksOn(backend).lock('a').acquire();
  await expect(lease.renew()).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'taken-over' });
  expect(lease.signal.aborted).toBe(true);
});

test('a renewal without a clear answer rejects, and the lease stays as it was', async () => {
  useFakeClock();
  const error = new Error('cut');
  const backend = scriptedBackend({ renew: () => Promise.resolve([{ status: 'unknown', error }]) });
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  await pass(1_000);
  await expect(lease.renew()).rejects.toMatchObject({ code: 'LOCK_BACKEND', cause: error });
  expect(lease.validForMs).toBe(28_698);
});

test('renew refuses an invalid ttl, and nothing is sent', async () => {
  const backend = scriptedBackend();
  const lease = await locksOn(backend).lock('a').acquire();
  await expect(lease.renew(Number.NaN)).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
  expect(backend.of('renew')).toEqual([]);
  await lease.release();
});

test('a session’s lease is valid for as long as the session is known to live', async () => {
  useFakeClock();
  const session = { until: 5_000 };
  const backend = scriptedBackend({
    attempt: (asked, _enqueue, call) =>
      Promise.resolve(granted(asked, call, { session: { validUntil: () => session.until } })),
  });
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  const { signal } = lease;
  expect(lease.validForMs).toBe(5_000 - performance.now());
  session.until = 45_000;
  await pass(31_000);
  expect(signal.aborted).toBe(false);
  await pass(14_000);
  expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'session-lost' });
});

test('a loss that the store pushes ends the lease at once, with its reason', async () => {
  useFakeClock();
  const pushed = new AbortController();
  const lost = listenTo('locks:lost');
  const backend = scriptedBackend({
    attempt: (asked, _enqueue, call) => Promise.resolve(granted(asked, call, { lost: pushed.signal })),
  });
  const lease = await locksOn(backend).lock('a').acquire();
  const { signal } = lease;
  pushed.abort('force-released');
  expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'force-released' });
  expect(lost).toMatchObject([{ reason: 'force-released' }]);
  await expect(lease.release()).rejects.toMatchObject({ code: 'LOCK_LOST' });
  expect(backend.of('release')).toEqual([]);
});

test.each([
  ['its reason', 'taken-over', 'taken-over'],
  ['no reason', undefined, 'session-lost'],
  ['an error', new Error('connection closed'), 'session-lost'],
])('a loss that is pushed with %s is reported as %s', async (_what, given, reason) => {
  const pushed = new AbortController();
  const backend = scriptedBackend({
    attempt: (asked, _enqueue, call) => Promise.resolve(granted(asked, call, { lost: pushed.signal })),
  });
  const lease = await locksOn(backend).lock('a').acquire();
  pushed.abort(given);
  expect(lease.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason });
});

test('a grant whose loss was pushed before it arrived is no lease: it is abandoned and tried again', async () => {
  let attempts = 0;
  const backend = scriptedBackend({
    attempt(asked, _enqueue, call) {
      attempts += 1;
      const lost = attempts === 1 ? { lost: AbortSignal.abort('taken-over') } : {};
      return Promise.resolve(granted(asked, call, lost));
    },
  });
  const lease = await locksOn(backend).lock('a').acquire();
  expect(lease.validForMs).toBeGreaterThan(0);
  const [first, second] = backend.of('attempt').map(({ ids }) => ids[0]);
  expect(backend.of('abandon').map(({ ids }) => ids[0])).toEqual([first]);
  expect(lease.acquisitionId).toBe(second);
  attempts = 0;
  expect(await rejectionOf(locksOn(backend).lock('b').tryAcquire())).toBe('LOCK_BACKEND');
});

test('leases that share one loss signal have one listener, and each lease stops following by itself', async () => {
  const pushed = new AbortController();
  const added = vi.spyOn(pushed.signal, 'addEventListener');
  const removed = vi.spyOn(pushed.signal, 'removeEventListener');
  const backend = scriptedBackend({
    attempt: (asked, _enqueue, call) => Promise.resolve(granted(asked, call, { lost: pushed.signal })),
  });
  const locks = locksOn(backend);
  const [released, ...leases] = await Promise.all(
    Array.from({ length: 50 }, (_, index) => locks.lock(`a${index}`).acquire()),
  );
  expect(added).toHaveBeenCalledTimes(1);
  await released?.release();
  expect(removed).not.toHaveBeenCalled();
  pushed.abort('session-lost');
  expect(leases.every(({ signal }) => signal.aborted)).toBe(true);
  expect(released?.signal.aborted).toBe(false);
});

test('nobody listens to the store’s loss signal once the lease is over', async () => {
  const pushed = new AbortController();
  const added = vi.spyOn(pushed.signal, 'addEventListener');
  const removed = vi.spyOn(pushed.signal, 'removeEventListener');
  const lost = listenTo('locks:lost');
  const backend = scriptedBackend({
    attempt: (asked, _enqueue, call) => Promise.resolve(granted(asked, call, { lost: pushed.signal })),
  });
  const lease = await locksOn(backend).lock('a').acquire();
  const { signal } = lease;
  await lease.release();
  expect(removed.mock.calls.map(([, listener]) => listener)).toEqual(
    added.mock.calls.map(([, listener]) => listener),
  );
  pushed.abort('session-lost');
  expect(signal.aborted).toBe(false);
  expect(lost).toEqual([]);
});

test('an acquire whose signal nobody reads makes no AbortController', async () => {
  const made = vi.spyOn(globalThis, 'AbortController');
  const lease = await locksOn(scriptedBackend()).lock('a').acquire();
  await lease.release();
  expect(made).not.toHaveBeenCalled();
  made.mockRestore();
});

/** A store that answers the first renewal when the test says, and the others at once; and the ttls asked for. */
function slowFirstRenewal() {
  const { answer, give, fail } = answerLater<void>();
  const asked: number[] = [];
  const backend = scriptedBackend({
    renew(items) {
      asked.push(items[0]?.ttlMs ?? 0);
      return asked.length === 1 ? answer.then(() => held(items)) : Promise.resolve(held(items));
    },
  });
  return { backend, asked, give, fail };
}

test.each([
  ['the watchdog', 'is under way'],
  ['the watchdog', 'failed'],
  ['the holder', 'is under way'],
  ['the holder', 'failed'],
])('a longer renewal after one of %s that %s is believed when it is repeated', async (whose, how) => {
  useFakeClock();
  const { backend, asked, give, fail } = slowFirstRenewal();
  const renewal = whose === 'the holder' ? 'manual' : 'auto';
  const lease = await locksOn(backend, { ttlMs: 30_000, renewal }).lock('a').acquire();
  if (whose === 'the holder') lease.renew().catch(() => {});
  else await pass(10_000);
  if (how === 'failed') fail(new Error('no reply'));
  await settled();
  await lease.renew(600_000);
  // The first may be carried out only now, and leave what it asked for.
  expect(lease.validForMs).toBeLessThan(30_000);
  give();
  await pass(10_000);
  expect(asked).toEqual([30_000, 600_000, 600_000]);
  expect(lease.validForMs).toBeGreaterThan(500_000);
  await pass(100_000);
  expect(asked).toHaveLength(3);
});

test('a hand-off is renewed once, also where maxHoldMs is over before', async () => {
  useFakeClock();
  const backend = scriptedBackend({
    attempt: () => Promise.resolve(contended),
    awaitTurn: (request, call) => Promise.resolve(grant(request, call, { validForMs: 2_000 })),
  });
  const lease = await locksOn(backend, { ttlMs: 30_000, maxHoldMs: 400 }).lock('a').acquire();
  await pass(5_000);
  expect(backend.of('renew')).toHaveLength(1);
  expect(lease.validForMs).toBeGreaterThan(20_000);
  await pass(30_000);
  expect(backend.of('renew')).toHaveLength(1);
  expect(lease.validForMs).toBe(0);
});

test.each(['the watchdog', 'the holder'])(
  'while a shorter renewal of %s is under way, longer ones count for no more than that',
  async (whose) => {
    useFakeClock();
    const { backend, asked, give } = slowFirstRenewal();
    const renewal = whose === 'the holder' ? 'manual' : 'auto';
    const lease = await locksOn(backend, { ttlMs: 600_000, renewal }).lock('a', { ttlMs: 3_000 }).acquire();
    if (whose === 'the holder') lease.renew(3_000).catch(() => {});
    else await pass(1_000);
    await lease.renew(600_000);
    for (let round = 0; round < 5; round += 1) {
      expect(lease.validForMs).toBeLessThan(3_000);
      await pass(1_000);
    }
    give();
    await pass(2_000);
    expect(lease.validForMs).toBeGreaterThan(500_000);
    expect(asked.length).toBeLessThan(10);
  },
);

test('the renewal that a caller no longer waits for counts until its call ends', async () => {
  useFakeClock();
  const { backend, give } = slowFirstRenewal();
  const lease = await locksOn(backend, { ttlMs: 60_000, renewal: 'manual' }).lock('a').acquire();
  const first = rejectionOf(lease.renew(3_000));
  await lease.renew(600_000);
  await pass(3_000);
  expect(await first).toBe('LOCK_BACKEND');
  expect(lease.validForMs).toBeLessThan(3_000);
  give();
  await pass(2_000);
  expect(lease.validForMs).toBeGreaterThan(500_000);
});

test.each([
  ['manual', 'renewal is manual'],
  ['auto', 'event loop blocked'],
] as const)('the loss of a lease with renewal %s by time names the likely cause', async (renewal, said) => {
  useFakeClock();
  const lease = await locksOn(scriptedBackend(), { ttlMs: 1_000, renewal }).lock('a').acquire();
  stall(2_000);
  expect(() => lease.assertValid()).toThrow(said);
});

test('a loss says for how long the event loop stood still', async () => {
  useFakeClock();
  const locks = locksOn(scriptedBackend(), { ttlMs: 3_000 });
  const manual = await locks.lock('a').acquire({ renewal: 'manual' });
  await pass(3_500);
  expect(manual.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired', blockedMs: 0 });
  const lease = await locks.lock('a').acquire();
  stall(5_000);
  // The renewal was due after a second.
  expect(() => lease.assertValid()).toThrow(expect.objectContaining({ reason: 'expired', blockedMs: 4_000 }));
});
