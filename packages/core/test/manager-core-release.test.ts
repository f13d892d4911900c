import { expect, test, vi } from 'vitest';
import { listenTo, locksOn, pass, rejectionOf, settled, stallLoop, useFakeClock } from './fixture.ts';
import {
  answerLater,
  contended,
  granted,
  noAnswer,
  type ScriptedBackend,
  scriptedBackend,
} from './scripted-backend.ts';

test('a released lease is not valid, and says so', async () => {
  const backend = scriptedBackend();
  const lease = await locksOn(backend).lock('a').acquire();
  const { signal } = lease;
  await lease.release();
  expect(lease.validForMs).toBe(0);
  expect(lease.holdCount).toBe(0);
  expect(() => lease.assertValid()).toThrow(expect.objectContaining({ code: 'LOCK_NOT_HELD' }));
  expect(await rejectionOf(lease.renew())).toBe('LOCK_NOT_HELD');
  expect(signal.aborted).toBe(false);
  expect(backend.of('renew')).toEqual([]);
});

test('a lease is not valid from the first moment of its release', async () => {
  const { answer, give } = answerLater<'released'>();
  const lease = await locksOn(scriptedBackend({ release: () => answer }))
    .lock('a')
    .acquire();
  const releasing = lease.release();
  expect(lease.validForMs).toBe(0);
  expect(() => lease.assertValid()).toThrow(expect.objectContaining({ code: 'LOCK_NOT_HELD' }));
  give('released');
  await releasing;
});

test('a second release is a no-op, also while the first is under way', async () => {
  const backend = scriptedBackend();
  const lease = await locksOn(backend).lock('a').acquire();
  await Promise.all([lease.release(), lease.release()]);
  await lease.release();
  expect(backend.of('release')).toHaveLength(1);
});

test('the release of a lost lease says so and sends nothing', async () => {
  useFakeClock();
  const backend = scriptedBackend();
  const lease = await locksOn(backend, { ttlMs: 1_000, renewal: 'manual' }).lock('a').acquire();
  await pass(1_000);
  expect(await rejectionOf(lease.release())).toBe('LOCK_LOST');
  expect(backend.of('release')).toEqual([]);
});

test('a listener of the loss that releases the lease, as the loss comes out at a release, leaves it released once', async () => {
  useFakeClock();
  const lease = await locksOn(scriptedBackend(), { ttlMs: 1_000, renewal: 'manual' }).lock('a').acquire();
  const inner: Promise<string>[] = [];
  lease.signal.addEventListener('abort', () => inner.push(rejectionOf(lease.release())));
  vi.spyOn(performance, 'now').mockReturnValue(5_000);
  expect(await rejectionOf(lease.release())).toBe('LOCK_LOST');
  expect(await Promise.all(inner)).toEqual(['LOCK_LOST']);
  expect(lease.holdCount).toBe(0);
});

test('a release that finds nothing after its session ended says so', async () => {
  useFakeClock();
  let end = Number.POSITIVE_INFINITY;
  const { answer, give } = answerLater<'not-held'>();
  const backend = scriptedBackend({
    attempt: async (request, _enqueue, call) => {
      const attempt = granted(request, call);
      if (attempt.status !== 'granted') return attempt;
      return { status: 'granted', grant: { ...attempt.grant, session: { validUntil: () => end } } };
    },
    release: () => answer,
  });
  const lease = await locksOn(backend).lock('a').acquire();
  const releasing = lease.release().catch((error: unknown) => error);
  await pass(10);
  end = Number.NEGATIVE_INFINITY;
  give('not-held');
  expect(await releasing).toMatchObject({ code: 'LOCK_LOST', reason: 'session-lost' });
});

test('a release that the store refuses at once rejects with the loss', async () => {
  const lost = listenTo('locks:lost');
  const lease = await locksOn(scriptedBackend({ release: () => Promise.resolve('not-held') }))
    .lock('a')
    .acquire();
  const { signal } = lease;
  await expect(lease.release()).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'force-released' });
  expect(signal.aborted).toBe(true);
  expect(lost).toHaveLength(1);
});

test('a release whose resending finds nothing held has released', async () => {
  let sendings = 0;
  const backend = scriptedBackend({
    release: () => {
      sendings += 1;
      return sendings === 1 ? Promise.reject(new Error('cut')) : Promise.resolve('not-held');
    },
  });
  const lease = await locksOn(backend).lock('a').acquire();
  await lease.release();
  expect(sendings).toBe(2);
});

test('a release that the client itself may have sent twice has released', async () => {
  const lease = await locksOn(scriptedBackend({ release: () => Promise.resolve('unknown') }))
    .lock('a')
    .acquire();
  await lease.release();
  expect(lease.validForMs).toBe(0);
});

test('a release that gets no answer is repeated for about a second, then rejects', async () => {
  const backend = scriptedBackend({ release: noAnswer });
  const lease = await locksOn(backend).lock('a').acquire();
  const start = performance.now();
  await expect(lease.release()).rejects.toMatchObject({ code: 'LOCK_BACKEND', lockName: 'a' });
  expect(performance.now() - start).toBeGreaterThan(900);
  expect(performance.now() - start).toBeLessThan(3_000);
  // Three times, unless the event loop stood still meanwhile.
  expect(backend.of('release').length).toBeGreaterThanOrEqual(2);
});

test('releases that the store answers one after the other have the longer, the more there are', async () => {
  const answers: (() => void)[] = [];
  const backend = Object.assign(
    scriptedBackend({
      release: () => new Promise((resolve) => answers.push(() => resolve('released'))),
    }),
    { releaseBudgetMs: 100 },
  );
  const locks = locksOn(backend);
  const names = Array.from({ length: 200 }, (_, index) => `${index}`);
  const leases = await Promise.all(names.map((name) => locks.lock(name).acquire()));
  const startedAt = performance.now();
  let answered = 0;
  // Six times the budget of one.
  const answering = setInterval(() => {
    for (; answered < (performance.now() - startedAt) / 3; answered += 1) answers.shift()?.();
  }, 3);
  await Promise.all(leases.map((lease) => lease.release()));
  clearInterval(answering);
  expect(backend.of('release').length).toBeLessThan(2.5 * names.length);
});

test('of many releases that the store does not answer none is repeated for longer than one alone', async () => {
  const backend = Object.assign(scriptedBackend({ release: noAnswer }), { releaseBudgetMs: 200 });
  const locks = locksOn(backend);
  const names = Array.from({ length: 2_000 }, (_, index) => `${index}`);
  const leases = await Promise.all(names.map((name) => locks.lock(name).acquire()));
  const start = performance.now();
  const ends = await Promise.allSettled(leases.map((lease) => lease.release()));
  expect(ends.filter(({ status }) => status === 'fulfilled')).toEqual([]);
  // 5 ms for each would be ten seconds.
  expect(performance.now() - start).toBeLessThan(3_000);
});

test.each([
  ['is still open', noAnswer],
  ['fails', () => Promise.reject(new Error('cut'))],
])('a late answer to a release counts, also while its resending %s', async (_, resending) => {
  const { answer, give } = answerLater<'released'>();
  let sendings = 0;
  const backend = scriptedBackend({
    release: () => {
      sendings += 1;
      return sendings === 1 ? answer : resending();
    },
  });
  const lease = await locksOn(backend).lock('a').acquire();
  const releasing = lease.release();
  await vi.waitFor(() => expect(sendings).toBeGreaterThanOrEqual(2));
  give('released');
  await releasing;
});

test('a release is not repeated past the end of the lease', async () => {
  const backend = scriptedBackend({ release: () => Promise.reject(new Error('cut')) });
  const lease = await locksOn(backend, { ttlMs: 150 }).lock('a').acquire();
  const start = performance.now();
  expect(await rejectionOf(lease.release())).toBe('LOCK_BACKEND');
  expect(performance.now() - start).toBeLessThan(600);
  for (const sent of backend.of('release')) expect(sent.at - start).toBeLessThan(160);
});

test('a release whose pause takes longer than the lease, on a blocked loop, is not sent again', async () => {
  const backend = scriptedBackend({ release: () => Promise.reject(new Error('cut')) });
  const lease = await locksOn(backend, { ttlMs: 200 }).lock('a').acquire();
  const releasing = rejectionOf(lease.release());
  await settled();
  for (const end = performance.now() + 250; performance.now() < end; );
  expect(await releasing).toBe('LOCK_BACKEND');
  expect(backend.of('release')).toHaveLength(1);
});

test('a release is not repeated where the backend says that it makes no sense', async () => {
  const cause = new Error('wrong password');
  const backend = scriptedBackend({ release: () => Promise.reject(cause), isRetryable: () => false });
  const lease = await locksOn(backend).lock('a').acquire();
  await expect(lease.release()).rejects.toMatchObject({ code: 'LOCK_BACKEND', cause });
  expect(backend.of('release')).toHaveLength(1);
});

test('a backend that answers a release with garbage has not released', async () => {
  const backend = scriptedBackend({ release: () => Promise.resolve('fine' as never) });
  const lease = await locksOn(backend).lock('a').acquire();
  expect(await rejectionOf(lease.release())).toBe('LOCK_BACKEND');
});

test('disposal throws the loss, and keeps the error of the block', async () => {
  const backend = scriptedBackend({ release: () => Promise.resolve('not-held') });
  const work = async (): Promise<void> => {
    await using lease = await locksOn(backend).lock('a').acquire();
    throw new Error(`the body's own error under ${lease.name}`);
  };
  const error: unknown = await work().catch((reason: unknown) => reason);
  expect(error).toMatchObject({ name: 'SuppressedError', error: { code: 'LOCK_LOST' } });
  expect(String((error as { suppressed: unknown }).suppressed)).toContain('the body');
});

test('an abandon that gets no answer is repeated, then reported', async () => {
  const failed = listenTo('locks:abandon-failed');
  const error = new Error('cut');
  const backend = scriptedBackend({
    attempt: () => Promise.reject(new Error('wrong type')),
    abandon: () => Promise.reject(error),
    isRetryable: (reason) => reason === error,
  });
  expect(await rejectionOf(locksOn(backend).lock('a').acquire())).toBe('LOCK_BACKEND');
  await vi.waitFor(() => expect(failed).toMatchObject([{ name: 'a', error }]), 3_000);
  expect(backend.of('abandon').length).toBeGreaterThanOrEqual(3);
});

/** Locks on a store that answers no abandon while it is away, and three acquires that give up at it. */
async function threeFailedAbandons(store: { isAway: boolean }): Promise<{
  readonly backend: ScriptedBackend;
  readonly locks: ReturnType<typeof locksOn>;
  /** Their ids. */
  readonly failed: readonly string[];
  readonly abandoned: () => readonly string[];
}> {
  const backend = scriptedBackend({
    attempt: () => Promise.resolve(contended),
    awaitTurn: noAnswer,
    abandon: () => (store.isAway ? Promise.reject(new Error('away')) : Promise.resolve()),
    // An error that may be repeated at once is, for a second: here each abandon fails at once.
    isRetryable: () => false,
  });
  const locks = locksOn(backend, { ttlMs: 5_000, waitMs: 10 });
  const ends = Promise.all(['a', 'b', 'c'].map((name) => rejectionOf(locks.lock(name).acquire())));
  await pass(10);
  expect(await ends).toEqual(['LOCK_TIMEOUT', 'LOCK_TIMEOUT', 'LOCK_TIMEOUT']);
  const abandoned = (): readonly string[] => backend.of('abandon').flatMap(({ ids }) => ids);
  return { backend, locks, failed: abandoned(), abandoned };
}

test('abandons that failed are repeated, one a second for all, until the store answers', async () => {
  useFakeClock();
  const store = { isAway: true };
  const { failed, abandoned } = await threeFailedAbandons(store);
  expect(new Set(failed).size).toBe(3);
  await pass(3_000);
  expect(abandoned().slice(3)).toEqual(failed);
  store.isAway = false;
  await pass(1_000);
  expect(abandoned().slice(6)).toEqual(failed);
  await pass(10_000);
  expect(abandoned()).toHaveLength(9);
});

test('an abandon that failed is not repeated once the ttl of what it abandons is over', async () => {
  useFakeClock();
  const { abandoned } = await threeFailedAbandons({ isAway: true });
  await pass(60_000);
  // Four times within the ttl of 5 s.
  expect(abandoned()).toHaveLength(3 + 4);
});

test('a store that is silent gets an abandon that failed again, when a second was waited for its answer', async () => {
  useFakeClock();
  const store = { isAway: true };
  const { backend, failed, abandoned } = await threeFailedAbandons(store);
  backend.abandon = (request, call) => {
    backend.sent.push({ method: 'abandon', ids: [request.acquisitionId], at: call.now() });
    return noAnswer();
  };
  await pass(3_500);
  expect(abandoned().slice(3)).toEqual([failed[0], failed[1]]);
});

test('while a manager drains, abandons that failed are repeated; once it closes its backend, none is, and no timer is left', async () => {
  useFakeClock();
  const { backend, locks, abandoned } = await threeFailedAbandons({ isAway: true });
  backend.attempt = (request, _enqueue, call) => Promise.resolve(granted(request, call));
  await locks.lock('held').acquire({ ttlMs: 60_000 });
  const [called, ended] = [answerLater<void>(), answerLater<void>()];
  backend.close = () => {
    called.give();
    return ended.answer;
  };
  const closing = locks.close({ drainMs: 2_500 });
  await pass(2_400);
  expect(abandoned()).toHaveLength(3 + 2);
  await pass(200);
  await called.answer;
  // The lease that was held is abandoned as well.
  expect(abandoned()).toHaveLength(3 + 2 + 1);
  await pass(2_000);
  ended.give();
  await closing;
  await pass(60_000);
  expect(abandoned()).toHaveLength(3 + 2 + 1);
  expect(vi.getTimerCount()).toBe(0);
});

test('a grant that comes after the close leaves no timer', async () => {
  useFakeClock();
  const { answer, give } = answerLater<void>();
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) => answer.then(() => granted(request, call)),
  });
  const locks = locksOn(backend);
  const acquiring = rejectionOf(locks.lock('a').acquire());
  const closing = locks.close();
  await pass(1);
  await closing;
  give();
  await pass(1);
  expect(await acquiring).toBe('LOCK_CLOSED');
  expect(vi.getTimerCount()).toBe(0);
});

test('events of an acquire and of its release have one identity', async () => {
  useFakeClock();
  const [acquired, released] = [listenTo('locks:acquired'), listenTo('locks:released')];
  const lease = await locksOn(scriptedBackend()).lock('a').acquire();
  await pass(250);
  await lease.release();
  await settled();
  const identity = { name: 'a', backend: 'scripted', acquisitionId: lease.acquisitionId };
  expect(acquired).toMatchObject([{ ...identity, waitedMs: 0, fencingToken: lease.fencingToken }]);
  expect(released).toMatchObject([{ ...identity, heldMs: 250 }]);
});

test.each([1_000, 3_000, 60_000])(
  'a stall of %i ms right after a release takes nothing from its budget',
  async (stallMs) => {
    useFakeClock();
    const { answer, give } = answerLater<'released'>();
    const backend = scriptedBackend({ release: () => answer });
    const lease = await locksOn(backend, { ttlMs: 120_000 }).lock('a').acquire();
    const releasing = rejectionOf(lease.release());
    stallLoop(stallMs);
    await pass(400);
    give('released');
    expect(await releasing).toBe('fulfilled');
  },
);

test('a release that a client does not send in time because of a stall is sent again', async () => {
  useFakeClock();
  let sendings = 0;
  const backend = scriptedBackend({
    release: () => {
      sendings += 1;
      return sendings === 1 ? Promise.reject(new Error('cut')) : Promise.resolve('released');
    },
  });
  const lease = await locksOn(backend).lock('a').acquire();
  const releasing = rejectionOf(lease.release());
  await settled();
  stallLoop(3_000);
  await pass(50);
  expect(await releasing).toBe('fulfilled');
  expect(sendings).toBe(2);
});

test('no stall makes a release outlast its lease', async () => {
  useFakeClock();
  const backend = scriptedBackend({ release: noAnswer });
  const lease = await locksOn(backend, { ttlMs: 1_000 }).lock('a').acquire();
  const releasing = rejectionOf(lease.release());
  stallLoop(3_000);
  await pass(400);
  expect(await releasing).toBe('LOCK_BACKEND');
  expect(backend.of('release')).toHaveLength(1);
});

const refused = () => Promise.reject(new Error('refused'));

test('a release that failed is repeated once a second, until the store answers', async () => {
  useFakeClock();
  let isDown = true;
  const backend = scriptedBackend({
    release: refused,
    abandon: () => (isDown ? refused() : Promise.resolve()),
    isRetryable: () => false,
  });
  const lease = await locksOn(backend).lock('a').acquire();
  const failed = listenTo('locks:release-failed');
  expect(await rejectionOf(lease.release())).toBe('LOCK_BACKEND');
  expect(backend.of('abandon')).toEqual([]);
  await pass(3_000);
  expect(backend.of('abandon').length).toBeGreaterThanOrEqual(2);
  isDown = false;
  await pass(1_000);
  const answered = backend.of('abandon');
  await pass(20_000);
  expect(backend.of('abandon')).toEqual(answered);
  expect(new Set(answered.flatMap(({ ids }) => ids))).toEqual(new Set([lease.acquisitionId]));
  expect(failed).toHaveLength(1);
});

test('a release that failed is repeated no longer than its lease lasts', async () => {
  useFakeClock();
  const backend = scriptedBackend({ release: refused, abandon: refused, isRetryable: () => false });
  const startedAt = performance.now();
  const lease = await locksOn(backend, { ttlMs: 5_000 }).lock('a').acquire();
  expect(await rejectionOf(lease.release())).toBe('LOCK_BACKEND');
  await pass(60_000);
  const sent = backend.of('abandon').map(({ at }) => at - startedAt);
  expect(sent.length).toBeGreaterThan(1);
  expect(Math.max(...sent)).toBeLessThan(5_000);
});
