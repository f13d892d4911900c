import { setTimeout as delay } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import type { Attempt, Call, ResourceState } from '../src/backend/types.ts';
import { codeOf, listenTo, locksOn, pass, rejectionOf, settled, useFakeClock } from './fixture.ts';
import {
  answerLater,
  capabilities,
  contended,
  grant,
  granted,
  noAnswer,
  scriptedBackend,
} from './scripted-backend.ts';

test('a closed manager refuses everything with LOCK_CLOSED, and sends nothing', async () => {
  const backend = scriptedBackend({
    capabilities: { ...capabilities, features: ['list', 'force-release'] },
    list: async function* () {},
    forceRelease: () => Promise.resolve([]),
  });
  const locks = locksOn(backend);
  const lock = locks.lock('a');
  await locks.close();
  expect(codeOf(() => locks.lock('a'))).toBe('LOCK_CLOSED');
  expect(codeOf(() => locks.list())).toBe('LOCK_CLOSED');
  for (const call of [
    lock.acquire(),
    lock.tryAcquire(),
    lock.run(() => {}),
    lock.inspect(),
    locks.inspect('a'),
    locks.forceRelease('a'),
  ]) {
    expect(await rejectionOf(call)).toBe('LOCK_CLOSED');
  }
  expect(backend.sent).toEqual([]);
});

test('close ends leases at once, and releases them at the store', async () => {
  const backend = scriptedBackend();
  const locks = locksOn(backend);
  const lease = await locks.lock('a').acquire();
  const { signal } = lease;
  await locks.close();
  expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'closed' });
  expect(backend.of('abandon').map((sent) => sent.ids[0])).toEqual([lease.acquisitionId]);
  expect(await rejectionOf(lease.renew())).toBe('LOCK_LOST');
  expect(await rejectionOf(lease.release())).toBe('LOCK_LOST');
});

test.each([
  ['in an attempt', { attempt: () => noAnswer<Attempt>() }],
  ['in the queue', { attempt: () => Promise.resolve(contended), awaitTurn: () => noAnswer<undefined>() }],
  [
    'between attempts',
    { attempt: () => Promise.resolve<Attempt>({ status: 'contended', retryAfterMs: 60_000 }) },
  ],
])('close ends a wait %s, and its id is abandoned before the backend is closed', async (_where, script) => {
  const order: string[] = [];
  const backend = scriptedBackend({
    ...script,
    abandon: () => {
      order.push('abandon');
      return Promise.resolve();
    },
    close: () => {
      order.push('close');
      return Promise.resolve();
    },
  });
  const locks = locksOn(backend);
  const waiting = rejectionOf(locks.lock('a').acquire());
  await settled();
  await locks.close();
  expect(await waiting).toBe('LOCK_CLOSED');
  expect(order).toEqual(['abandon', 'close']);
});

test('close waits for a release that is under way', async () => {
  const { answer, give } = answerLater<'released'>();
  const closed = vi.fn(() => Promise.resolve());
  const locks = locksOn(scriptedBackend({ release: () => answer, close: closed }));
  const lease = await locks.lock('a').acquire();
  const releasing = lease.release();
  const closing = locks.close();
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(closed).not.toHaveBeenCalled();
  give('released');
  await Promise.all([releasing, closing]);
  expect(closed).toHaveBeenCalledTimes(1);
});

test('close ends although a release and an abandon get no answer', async () => {
  const locks = locksOn(scriptedBackend({ release: noAnswer, abandon: noAnswer }));
  await locks.lock('held').acquire();
  const lease = await locks.lock('released').acquire();
  const releasing = rejectionOf(lease.release());
  const start = performance.now();
  await locks.close();
  expect(performance.now() - start).toBeLessThan(3_000);
  expect(await releasing).toBe('LOCK_BACKEND');
});

test('close ends the operators’ calls that are under way', async () => {
  const locks = locksOn(scriptedBackend({ inspect: () => noAnswer<ResourceState>() }));
  const inspecting = rejectionOf(locks.inspect('a'));
  await locks.close();
  expect(await inspecting).toBe('LOCK_CLOSED');
});

test('a grant that arrives at a closed manager is abandoned, and gives no lease', async () => {
  const { answer, give } = answerLater<void>();
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) => answer.then(() => granted(request, call)),
  });
  const locks = locksOn(backend);
  const acquiring = rejectionOf(locks.lock('a').acquire());
  await settled();
  const closing = locks.close();
  give();
  expect(await acquiring).toBe('LOCK_CLOSED');
  await closing;
  await settled();
  const [attempt] = backend.of('attempt');
  expect(backend.of('abandon').every((sent) => sent.ids[0] === attempt?.ids[0])).toBe(true);
  expect(backend.of('abandon').length).toBeGreaterThan(0);
});

test('a grant that arrives after the backend was closed is reported, and no call is made for it', async () => {
  const failures = listenTo('locks:abandon-failed');
  const attempt = answerLater<void>();
  const turn = answerLater<void>();
  let isClosed = false;
  const calls: string[] = [];
  const called = (what: string): void => void (isClosed && calls.push(what));
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) =>
      request.resource === 'queued'
        ? Promise.resolve(contended)
        : attempt.answer.then(() => granted(request, call)),
    awaitTurn: (request, call) => turn.answer.then(() => grant(request, call)),
    abandon: async () => called('abandon'),
    renew: async () => [called('renew')] as never,
    release: async () => called('release') as never,
    close: async () => void (isClosed = true),
  });
  const locks = locksOn(backend);
  const attempting = rejectionOf(locks.lock('attempted').acquire());
  const queued = rejectionOf(locks.lock('queued').acquire());
  await settled();
  await locks.close();
  expect([await attempting, await queued]).toEqual(['LOCK_CLOSED', 'LOCK_CLOSED']);
  attempt.give();
  turn.give();
  await settled();
  expect(calls).toEqual([]);
  expect(failures.map(({ name }) => name)).toEqual(['attempted', 'queued']);
  expect(failures.map(({ error }) => (error as { code?: string }).code)).toEqual([
    'LOCK_CLOSED',
    'LOCK_CLOSED',
  ]);
});

test('a listener of a loss by the close finds the manager closed', async () => {
  const locks = locksOn(scriptedBackend());
  const lease = await locks.lock('a').acquire();
  const found: string[] = [];
  lease.signal.addEventListener('abort', () => found.push(codeOf(() => locks.lock('b'))));
  await locks.close();
  expect(found).toEqual(['LOCK_CLOSED']);
});

test('a second close is a no-op, and a manager can be disposed of', async () => {
  const close = vi.fn(() => Promise.resolve());
  const locks = locksOn(scriptedBackend({ close }));
  await Promise.all([locks.close(), locks.close()]);
  await locks[Symbol.asyncDispose]();
  expect(close).toHaveBeenCalledTimes(1);
});

test('a backend that fails to close rejects the close with LOCK_BACKEND, after all leases were released', async () => {
  const cause = new Error('socket');
  const backend = scriptedBackend({ close: () => Promise.reject(cause) });
  const locks = locksOn(backend);
  await locks.lock('a').acquire();
  await expect(locks.close()).rejects.toMatchObject({ code: 'LOCK_BACKEND', cause });
  expect(backend.of('abandon')).toHaveLength(1);
});

test('nothing runs on after close', async () => {
  const backend = scriptedBackend();
  const locks = locksOn(backend, { ttlMs: 100 });
  await locks.lock('a').acquire();
  await locks.close();
  const before = backend.sent.length;
  await new Promise((resolve) => setTimeout(resolve, 150));
  expect(backend.sent).toHaveLength(before);
});

test('list gives what the backend lists, and its failure as LOCK_BACKEND', async () => {
  const states: ResourceState[] = ['a', 'b'].map((resource) => ({
    name: resource,
    holders: [],
    waiters: [],
  }));
  const cause = new Error('cut');
  const backend = scriptedBackend({
    capabilities: { ...capabilities, features: ['list'] },
    list: async function* (prefix) {
      yield* states;
      if (prefix === 'broken') throw cause;
    },
  });
  const locks = locksOn(backend);
  const collect = async (prefix?: string): Promise<ResourceState[]> => {
    const found: ResourceState[] = [];
    for await (const state of locks.list(prefix)) found.push(state);
    return found;
  };
  expect(await collect()).toEqual(states);
  await expect(collect('broken')).rejects.toMatchObject({ code: 'LOCK_BACKEND', cause });
});

test('a backend that does not come to its end does not hold up close for ever', async () => {
  useFakeClock();
  const called = answerLater<void>();
  const close = (): Promise<void> => {
    called.give();
    return noAnswer();
  };
  const closing = rejectionOf(locksOn(scriptedBackend({ close })).close());
  await called.answer;
  await pass(10_001);
  expect(await closing).toBe('LOCK_BACKEND');
});

const listing = { ...capabilities, features: ['list'] } as const;

test('a list that gives no answer is given up, and its signal aborts', async () => {
  useFakeClock();
  let signal: AbortSignal | undefined;
  const list = async function* (_prefix: string, call: Call): AsyncGenerator<ResourceState> {
    signal = call.signal;
    yield { name: 'a', holders: [], waiters: [] };
    await noAnswer<void>();
  };
  const states = locksOn(scriptedBackend({ capabilities: listing, list }))
    .list()
    [Symbol.asyncIterator]();
  expect((await states.next()).value?.name).toBe('a');
  // However long the reader takes.
  await pass(60_000);
  const next = rejectionOf(states.next());
  await pass(10_001);
  expect(await next).toBe('LOCK_BACKEND');
  expect(signal?.aborted).toBe(true);
});

test('close ends a list that waits for an answer, and a reader who stops ends the backend’s', async () => {
  let signal: AbortSignal | undefined;
  const list = async function* (_prefix: string, call: Call): AsyncGenerator<ResourceState> {
    signal = call.signal;
    yield { name: 'a', holders: [], waiters: [] };
    await noAnswer<void>();
  };
  const locks = locksOn(scriptedBackend({ capabilities: listing, list }));
  for await (const { name } of locks.list()) if (name === 'a') break;
  expect(signal?.aborted).toBe(true);
  const states = locks.list()[Symbol.asyncIterator]();
  await states.next();
  const next = rejectionOf(states.next());
  await locks.close();
  expect(await next).toBe('LOCK_CLOSED');
});

test('close beside a store that answers nothing settles in 3 s, reports what is left, and sends nothing after', async () => {
  useFakeClock();
  const backend = scriptedBackend({
    abandon: () => noAnswer<void>(),
    release: () => noAnswer<'released'>(),
    close: () => noAnswer<void>(),
  });
  // Its own budget is longer than what close has.
  Object.assign(backend, { releaseBudgetMs: 20_000 });
  const failed = listenTo('locks:abandon-failed');
  const locks = locksOn(backend);
  const [kept, released] = [await locks.lock('a').acquire(), await locks.lock('b').acquire()];
  const releasing = rejectionOf(released.release());
  const closing = watched(locks.close());
  // The phases of a close are iterations of the event loop, which the fake clock does not move.
  await delay(20);
  await pass(2_100);
  await delay(20);
  await pass(800);
  expect(closing.settled).toBe(false);
  await pass(200);
  await delay(20);
  expect(closing.settled).toBe(true);
  expect(await releasing).toBe('LOCK_BACKEND');
  expect(failed).toMatchObject([{ name: 'a', acquisitionId: kept.acquisitionId }]);
  const sent = backend.sent.length;
  await pass(60_000);
  expect(backend.sent).toHaveLength(sent);
});

test('close waits for as long as the store answers, one abandon after the other', async () => {
  useFakeClock();
  const answers: (() => void)[] = [];
  const backend = scriptedBackend({ abandon: () => new Promise<void>((resolve) => answers.push(resolve)) });
  Object.assign(backend, { releaseBudgetMs: 60_000 });
  const locks = locksOn(backend);
  for (const name of ['a', 'b', 'c', 'd']) await locks.lock(name).acquire({ ttlMs: 600_000 });
  const closing = watched(locks.close());
  await delay(20);
  for (let answered = 0; answered < 4; answered += 1) {
    await pass(1_500);
    expect(closing.settled).toBe(false);
    answers.shift()?.();
    await delay(20);
  }
  expect(closing.settled).toBe(true);
});

function watched(work: Promise<unknown>): { readonly settled: boolean } {
  const state = { settled: false };
  const settle = (): void => {
    state.settled = true;
  };
  work.then(settle, settle);
  return state;
}
