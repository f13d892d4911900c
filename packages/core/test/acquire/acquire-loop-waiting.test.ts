import { expect, test, vi } from 'vitest';
import type { Grant } from '../../src/backend/types.ts';
import { locksOn, pass, rejectionOf, settled, useFakeClock } from '../fixture.ts';
import { answerLater, contended, grant, granted, noAnswer, scriptedBackend } from '../scripted-backend.ts';

const LAPSED = { status: 'lost', reason: 'expired' } as const;

test('a hand-off is the lease, without another attempt', async () => {
  useFakeClock();
  const { answer, give } = answerLater<void>();
  const backend = scriptedBackend({
    attempt: () => Promise.resolve(contended),
    awaitTurn: (request, call) => answer.then(() => grant(request, call)),
  });
  const acquiring = locksOn(backend).lock('a').acquire();
  await pass(300);
  give();
  const lease = await acquiring;
  expect(lease.validForMs).toBeGreaterThan(29_000);
  expect(backend.of('attempt')).toHaveLength(1);
  expect(backend.of('abandon')).toEqual([]);
});

test('a hint is followed by another attempt with the same id', async () => {
  useFakeClock();
  const { answer, give } = answerLater<undefined>();
  let free = false;
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) => Promise.resolve(free ? granted(request, call) : contended),
    awaitTurn: () => answer,
  });
  const acquiring = locksOn(backend).lock('a').acquire();
  await pass(300);
  free = true;
  give(undefined);
  const lease = await acquiring;
  expect(backend.of('attempt').map((sent) => sent.ids[0])).toEqual([
    lease.acquisitionId,
    lease.acquisitionId,
  ]);
});

test('without a hint the store is asked again after retryAfterMs, or up to a fifth sooner', async () => {
  useFakeClock();
  const signals: (AbortSignal | undefined)[] = [];
  const backend = scriptedBackend({
    attempt: () => Promise.resolve({ status: 'contended', retryAfterMs: 1_000 }),
    awaitTurn: (_request, call) => {
      signals.push(call.signal);
      return noAnswer();
    },
  });
  const waiting = rejectionOf(locksOn(backend).lock('a').acquire({ waitMs: 10_000 }));
  await pass(10_000);
  await waiting;
  const times = backend.of('attempt').map((sent) => sent.at);
  for (const [index, at] of times.slice(1).entries()) {
    expect(at - (times[index] ?? 0)).toBeGreaterThanOrEqual(800);
    expect(at - (times[index] ?? 0)).toBeLessThanOrEqual(1_001);
  }
  expect(signals.length).toBe(times.length);
  // The wait for a hint in the backend was aborted.
  expect(signals.every((signal) => signal?.aborted)).toBe(true);
});

test('a backend without hints and without advice is asked every 50 ms at most', async () => {
  const backend = scriptedBackend({ attempt: () => Promise.resolve(contended) });
  expect(await rejectionOf(locksOn(backend).lock('a').acquire({ waitMs: 500 }))).toBe('LOCK_TIMEOUT');
  expect(backend.of('attempt').length).toBeGreaterThan(3);
  expect(backend.of('attempt').length).toBeLessThanOrEqual(13);
});

test('advice to come back at once is not taken literally', async () => {
  useFakeClock();
  const backend = scriptedBackend({
    attempt: () => Promise.resolve({ status: 'contended', retryAfterMs: 0 }),
    awaitTurn: noAnswer,
  });
  const waiting = rejectionOf(locksOn(backend).lock('a').acquire({ waitMs: 1_000 }));
  await pass(1_000);
  await waiting;
  expect(backend.of('attempt').length).toBeLessThanOrEqual(501);
});

test('hints that come without end and without a grant do not make a tight loop', async () => {
  const backend = scriptedBackend({
    attempt: () => Promise.resolve(contended),
    awaitTurn: () => Promise.resolve(undefined),
  });
  expect(await rejectionOf(locksOn(backend).lock('a').acquire({ waitMs: 400 }))).toBe('LOCK_TIMEOUT');
  expect(backend.of('attempt').length).toBeLessThan(60);
});

test('a wait that fails is repeated after a pause, and ends with an error that cannot be repeated', async () => {
  let waits = 0;
  const backend = scriptedBackend({
    attempt: () => Promise.resolve(contended),
    awaitTurn: () => {
      waits += 1;
      return Promise.reject(new Error(waits < 3 ? 'cut' : 'wrong password'));
    },
    isRetryable: (error) => (error as Error).message === 'cut',
  });
  await expect(locksOn(backend).lock('a').acquire()).rejects.toMatchObject({
    code: 'LOCK_BACKEND',
    cause: { message: 'wrong password' },
  });
  expect(waits).toBe(3);
  expect(backend.of('attempt')).toHaveLength(3);
  expect(backend.of('abandon')).toHaveLength(1);
});

test('a hand-off that lapsed is abandoned, and the wait goes on with a fresh id', async () => {
  let attempts = 0;
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) => {
      attempts += 1;
      return Promise.resolve(attempts === 1 ? contended : granted(request, call));
    },
    awaitTurn: (request, call) => Promise.resolve(grant(request, call, { countedFrom: call.now() - 30_000 })),
    renew: () => Promise.resolve([LAPSED]),
  });
  const lease = await locksOn(backend).lock('a').acquire();
  const [first, second] = backend.of('attempt').map((sent) => sent.ids[0]);
  expect(second).toBe(lease.acquisitionId);
  expect(first).not.toBe(second);
  expect(backend.of('abandon').map((sent) => sent.ids[0])).toEqual([first]);
});

test('a grant pushed to an id that was given up for a fresh one is abandoned', async () => {
  useFakeClock();
  const { answer, give } = answerLater<Grant | undefined>();
  let attempts = 0;
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) => {
      attempts += 1;
      if (attempts === 1) return Promise.resolve({ status: 'contended', retryAfterMs: 100 });
      if (attempts > 2) return Promise.resolve(contended);
      return Promise.resolve(granted(request, call, { countedFrom: call.now() - 30_000 }));
    },
    awaitTurn: () => answer,
    renew: () => Promise.resolve([LAPSED]),
  });
  const controller = new AbortController();
  const waiting = locksOn(backend)
    .lock('a')
    .acquire({ signal: controller.signal })
    .catch(() => 'aborted');
  await pass(101);
  const request = {
    resource: 'a',
    acquisitionId: backend.of('attempt')[0]?.ids[0] ?? '',
    mode: { kind: 'exclusive' },
  } as const;
  const abandoned = backend.of('abandon').length;
  give({ request: { ...request, ttlMs: 1_000 }, fencingToken: 1n, countedFrom: 0 });
  await settled();
  expect(backend.of('abandon').length).toBe(abandoned + 1);
  controller.abort();
  expect(await waiting).toBe('aborted');
});

test('a waiting acquire keeps the process alive, an acquired lease does not', async () => {
  useFakeClock();
  const intervals = vi.spyOn(globalThis, 'setInterval');
  const { answer, give } = answerLater<void>();
  const backend = scriptedBackend({
    attempt: () => Promise.resolve(contended),
    awaitTurn: (request, call) => answer.then(() => grant(request, call)),
  });
  const acquiring = locksOn(backend).lock('a').acquire();
  await pass(10);
  const handles = intervals.mock.results.map((result) => result.value as NodeJS.Timeout);
  expect(handles.map((handle) => handle.hasRef())).toEqual([true]);
  const before = vi.getTimerCount();
  give();
  await acquiring;
  expect(vi.getTimerCount()).toBeLessThanOrEqual(before);
  expect(intervals).toHaveBeenCalledTimes(1);
});

test('a thousand waiters share one timer for their limits', async () => {
  useFakeClock();
  const setTimer = vi.spyOn(globalThis, 'setTimeout');
  const backend = scriptedBackend({ attempt: () => Promise.resolve(contended), awaitTurn: noAnswer });
  const locks = locksOn(backend);
  const waiting = Array.from({ length: 1_000 }, (_, index) =>
    rejectionOf(locks.lock(`name-${index}`).acquire({ waitMs: 5_000 })),
  );
  await settled();
  // Armed for the first look at the first wait's deadline, and beside it the one that keeps the process alive while anybody waits.
  expect(setTimer).toHaveBeenCalledTimes(1);
  expect(vi.getTimerCount()).toBe(2);
  await pass(5_200);
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(['LOCK_TIMEOUT']));
});

test('a wait is not prolonged by a query of the holder that hangs', async () => {
  useFakeClock();
  const backend = scriptedBackend({
    attempt: () => Promise.resolve(contended),
    awaitTurn: noAnswer,
    inspect: noAnswer,
  });
  let code: unknown;
  void rejectionOf(locksOn(backend).lock('name').acquire({ waitMs: 50 })).then((given) => (code = given));
  await pass(52);
  expect(code).toBe('LOCK_TIMEOUT');
});
