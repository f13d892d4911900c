import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { expect, onTestFinished, test } from 'vitest';
import type { Attempt, Grant } from '../../src/backend/types.ts';
import { listenTo, locksOn, pass, rejectionOf, settled, useFakeClock } from '../fixture.ts';
import { answerLater, contended, grant, granted, noAnswer, scriptedBackend } from '../scripted-backend.ts';

const reason = new Error('the user went away');

/** What an acquire came to: the lease's id, or what it rejected with. */
function outcome(acquiring: Promise<{ acquisitionId: string } | undefined>): Promise<unknown> {
  return acquiring.then(
    (lease) => lease?.acquisitionId,
    (error: unknown) => error,
  );
}

test('a signal that has aborted already rejects the acquire, and nothing is sent', async () => {
  const backend = scriptedBackend();
  const lock = locksOn(backend).lock('a');
  const signal = AbortSignal.abort(reason);
  expect(await outcome(lock.acquire({ signal }))).toBe(reason);
  expect(await outcome(lock.tryAcquire({ signal }))).toBe(reason);
  await expect(lock.run(() => 'ran', { signal })).rejects.toBe(reason);
  expect(backend.sent).toEqual([]);
});

test('an abort during an attempt rejects at once with its reason, and the id is abandoned', async () => {
  const backend = scriptedBackend({ attempt: noAnswer });
  const controller = new AbortController();
  const acquiring = outcome(locksOn(backend).lock('a').acquire({ signal: controller.signal }));
  await settled();
  controller.abort(reason);
  expect(await acquiring).toBe(reason);
  expect(backend.of('abandon').map((sent) => sent.ids)).toEqual(
    backend.of('attempt').map((sent) => sent.ids),
  );
});

test('an abort during a wait ends the backend’s wait too, and the id is abandoned', async () => {
  let signal: AbortSignal | undefined;
  const backend = scriptedBackend({
    attempt: () => Promise.resolve(contended),
    awaitTurn: (_request, call) => {
      signal = call.signal;
      return noAnswer();
    },
  });
  const controller = new AbortController();
  const acquiring = outcome(locksOn(backend).lock('a').acquire({ signal: controller.signal }));
  await settled();
  controller.abort(reason);
  expect(await acquiring).toBe(reason);
  expect(signal?.aborted).toBe(true);
  expect(backend.of('abandon')).toHaveLength(1);
});

test('an abort during a pause between attempts rejects at once', async () => {
  const backend = scriptedBackend({
    attempt: () => Promise.resolve({ status: 'contended', retryAfterMs: 60_000 }),
  });
  const controller = new AbortController();
  const acquiring = outcome(locksOn(backend).lock('a').acquire({ signal: controller.signal }));
  await settled();
  const start = performance.now();
  controller.abort(reason);
  expect(await acquiring).toBe(reason);
  expect(performance.now() - start).toBeLessThan(1_000);
  expect(backend.of('abandon')).toHaveLength(1);
});

test('an abort in the very turn of an attempt’s grant wins, and the grant is abandoned', async () => {
  const { answer, give } = answerLater<Attempt>();
  let grantIt = (): void => {};
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) => {
      grantIt = () => give(granted(request, call));
      return answer;
    },
  });
  const controller = new AbortController();
  const acquiring = outcome(locksOn(backend).lock('a').acquire({ signal: controller.signal }));
  await settled();
  // Registered after core's own: it runs when core has the grant and has not read it yet.
  void answer.then(() => controller.abort(reason));
  grantIt();
  expect(await acquiring).toBe(reason);
  expect(backend.of('abandon')[0]?.ids).toEqual(backend.of('attempt')[0]?.ids);
});

test('an abort in the very turn of a hand-off wins, and the grant is abandoned', async () => {
  const { answer, give } = answerLater<Grant | undefined>();
  let grantIt = (): void => {};
  const backend = scriptedBackend({
    attempt: () => Promise.resolve(contended),
    awaitTurn: (request, call) => {
      grantIt = () => give(grant(request, call));
      return answer;
    },
  });
  const controller = new AbortController();
  const acquiring = outcome(locksOn(backend).lock('a').acquire({ signal: controller.signal }));
  await settled();
  void answer.then(() => controller.abort(reason));
  grantIt();
  expect(await acquiring).toBe(reason);
  expect(backend.of('abandon')[0]?.ids).toEqual(backend.of('attempt')[0]?.ids);
});

test('a late grant to an id that was given up is abandoned when it comes', async () => {
  useFakeClock();
  const { answer, give } = answerLater<void>();
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) => answer.then(() => granted(request, call)),
  });
  const acquiring = rejectionOf(locksOn(backend).lock('a').acquire({ waitMs: 100 }));
  await pass(100);
  expect(await acquiring).toBe('LOCK_BACKEND');
  expect(backend.of('abandon')).toHaveLength(1);
  give();
  await settled();
  expect(backend.of('abandon').map((sent) => sent.ids)).toEqual([
    backend.of('attempt')[0]?.ids,
    backend.of('attempt')[0]?.ids,
  ]);
});

test('a late answer that may have enqueued the id is abandoned too, that of a single attempt need not be', async () => {
  useFakeClock();
  const { answer, give } = answerLater<Attempt>();
  const backend = scriptedBackend({ attempt: () => answer });
  const locks = locksOn(backend, { ttlMs: 100 });
  const waiting = rejectionOf(locks.lock('a').acquire({ waitMs: 100 }));
  const single = rejectionOf(locks.lock('b').tryAcquire());
  await pass(101);
  expect([await waiting, await single]).toEqual(['LOCK_BACKEND', 'LOCK_BACKEND']);
  expect(backend.of('abandon')).toHaveLength(2);
  give(contended);
  await settled();
  const [first] = backend.of('attempt');
  expect(backend.of('abandon').slice(2)).toMatchObject([{ ids: first?.ids }]);
});

test('a grant pushed to a waiter that gave up is abandoned when it comes', async () => {
  useFakeClock();
  const { answer, give } = answerLater<void>();
  const backend = scriptedBackend({
    attempt: () => Promise.resolve(contended),
    awaitTurn: (request, call) => answer.then(() => grant(request, call)),
  });
  const acquiring = rejectionOf(locksOn(backend).lock('a').acquire({ waitMs: 100 }));
  await pass(250);
  expect(await acquiring).toBe('LOCK_TIMEOUT');
  expect(backend.of('abandon')).toHaveLength(1);
  give();
  await settled();
  expect(backend.of('abandon')).toHaveLength(2);
});

test('a late error of an attempt that was given up is dropped', async () => {
  useFakeClock();
  const { answer, fail } = answerLater<Attempt>();
  const backend = scriptedBackend({ attempt: () => answer });
  const acquiring = rejectionOf(locksOn(backend).lock('a').acquire({ waitMs: 100 }));
  await pass(100);
  expect(await acquiring).toBe('LOCK_BACKEND');
  fail(new Error('cut'));
  await settled();
  expect(backend.of('attempt')).toHaveLength(1);
});

test('a subscriber of the contention event that aborts ends the wait', async () => {
  const controller = new AbortController();
  const abort = (): void => {
    controller.abort(reason);
  };
  subscribe('locks:contended', abort);
  onTestFinished(() => {
    unsubscribe('locks:contended', abort);
  });
  const backend = scriptedBackend({ attempt: () => Promise.resolve(contended), awaitTurn: noAnswer });
  expect(await outcome(locksOn(backend).lock('a').acquire({ signal: controller.signal }))).toBe(reason);
  expect(backend.of('abandon')).toHaveLength(1);
});

test('nobody listens to the caller’s signal once the acquire is over', async () => {
  const listeners = new Set<unknown>();
  const signal = {
    aborted: false,
    throwIfAborted: () => {},
    addEventListener: (_type: string, listener: unknown) => listeners.add(listener),
    removeEventListener: (_type: string, listener: unknown) => listeners.delete(listener),
  } as unknown as AbortSignal;
  let attempts = 0;
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) => {
      attempts += 1;
      return Promise.resolve(attempts % 2 === 1 ? contended : granted(request, call));
    },
    awaitTurn: () => Promise.resolve(undefined),
  });
  const locks = locksOn(backend);
  await locks.lock('a').acquire({ signal });
  await locks.lock('b').tryAcquire({ signal });
  expect(listeners).toEqual(new Set());
});

test('an abort is published as locks:gave-up, with its reason', async () => {
  const gaveUp = listenTo('locks:gave-up');
  const controller = new AbortController();
  const backend = scriptedBackend({ attempt: noAnswer });
  const acquiring = outcome(locksOn(backend).lock('a').acquire({ signal: controller.signal }));
  controller.abort(reason);
  await acquiring;
  expect(gaveUp).toMatchObject([{ name: 'a', error: reason }]);
});
