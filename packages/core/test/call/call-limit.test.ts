import { setTimeout as delay } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import type { Attempt, InspectOptions, ResourceState } from '../../src/backend/types.ts';
import { listenTo, locksOn, pass, rejectionOf, settled, useFakeClock } from '../fixture.ts';
import { answerLater, contended, grant, granted, noAnswer, scriptedBackend } from '../scripted-backend.ts';

const MANY = 1_000;

test('waiters of one name that end together share one query of its holder, without the queue', async () => {
  useFakeClock();
  let underWay = 0;
  let most = 0;
  const asked: (InspectOptions | undefined)[] = [];
  const locks = locksOn(
    scriptedBackend({
      attempt: () => Promise.resolve(contended),
      awaitTurn: () => noAnswer<undefined>(),
      async inspect(resource, _call, options): Promise<ResourceState> {
        asked.push(options);
        most = Math.max(most, ++underWay);
        await new Promise((resolve) => setTimeout(resolve, 20));
        underWay -= 1;
        const holder = { acquisitionId: 'x', mode: { kind: 'exclusive' }, label: 'the holder' } as const;
        return { name: resource, holders: [holder], waiters: [] };
      },
    }),
  );
  const lock = locks.lock('a');
  const ending = Promise.allSettled(
    Array.from({ length: MANY }, (_, index) => lock.acquire({ waitMs: 300 + index / 10 })),
  );
  await pass(1_000);
  const ends = await ending;
  const messages = ends.map((end) => (end.status === 'rejected' ? String(end.reason) : 'granted'));
  expect(messages.filter((message) => !message.includes('the holder'))).toEqual([]);
  expect(most).toBe(1);
  expect(asked.length).toBeLessThanOrEqual(10);
  expect(asked).toEqual(asked.map(() => ({ waiters: false })));
});

test('single attempts that find a name contended at the same time share one query of its holder', async () => {
  let inspections = 0;
  const locks = locksOn(
    scriptedBackend({
      attempt: () => Promise.resolve(contended),
      inspect: async (resource) => {
        inspections += 1;
        return { name: resource, holders: [], waiters: [] };
      },
    }),
  );
  const lock = locks.lock('a');
  const all = Array.from({ length: 50 }, () => rejectionOf(lock.acquire({ waitMs: 0 })));
  expect(new Set(await Promise.all(all))).toEqual(new Set(['LOCK_CONTENDED']));
  expect(inspections).toBe(1);
});

test('of many acquires a part is under way, in the order of the calls; a release and a renewal pass them', async () => {
  const answers: (() => void)[] = [];
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) => {
      if (request.resource === 'held') return Promise.resolve(granted(request, call));
      return new Promise<Attempt>((resolve) => answers.push(() => resolve(granted(request, call))));
    },
  });
  const locks = locksOn(backend);
  const held = await locks.lock('held').acquire();
  const waits = Array.from({ length: MANY }, (_, index) => locks.lock(`a ${index}`).acquire());
  await settled();
  expect(answers).toHaveLength(256);
  await held.renew();
  await held.release();
  expect(backend.of('renew')).toHaveLength(1);
  expect(backend.of('release')).toHaveLength(1);
  for (let index = 0; index < MANY; index += 1) {
    answers[index]?.();
    await waits[index];
    expect(answers.length).toBeLessThanOrEqual(256 + index + 1);
  }
  expect(answers).toHaveLength(MANY);
  const order = backend.of('attempt').map(({ ids }) => ids[0]);
  const leases = await Promise.all(waits);
  expect(order.slice(1)).toEqual(leases.map(({ acquisitionId }) => acquisitionId));
});

test('a caller that gives up before its attempt was sent sends nothing, and no other waits for it', async () => {
  const backend = scriptedBackend({ attempt: () => noAnswer<Attempt>() });
  const locks = locksOn(backend);
  const controller = new AbortController();
  const { signal } = controller;
  const waits = Array.from({ length: MANY }, () => locks.lock('a').acquire({ signal }));
  const ends = Promise.allSettled(waits);
  await settled();
  controller.abort();
  expect((await ends).every(({ status }) => status === 'rejected')).toBe(true);
  await delay(20);
  expect(backend.of('attempt')).toHaveLength(256);
  expect(backend.of('abandon')).toHaveLength(256);
  void locks
    .lock('b')
    .acquire({ waitMs: 50 })
    .catch(() => {});
  await settled();
  expect(backend.of('attempt')).toHaveLength(257);
});

test('of callers that give up together a part is rejected in each iteration of the event loop', async () => {
  const backend = scriptedBackend({
    attempt: () => Promise.resolve(contended),
    awaitTurn: () => noAnswer<undefined>(),
  });
  const locks = locksOn(backend);
  const controller = new AbortController();
  const { signal } = controller;
  let rejected = 0;
  const waits = Array.from({ length: MANY }, () =>
    locks
      .lock('a')
      .acquire({ signal })
      .catch(() => void (rejected += 1)),
  );
  await vi.waitUntil(() => backend.of('awaitTurn').length === MANY, { timeout: 20_000, interval: 5 });
  controller.abort();
  let most = 0;
  for (let before = 0; rejected < MANY; before = rejected) {
    await new Promise((resolve) => setImmediate(resolve));
    most = Math.max(most, rejected - before);
  }
  await Promise.all(waits);
  expect(most).toBeLessThanOrEqual(512);
});

test('of many abandons a part is under way; where none is answered the others do not wait for them', async () => {
  const failures = listenTo('locks:abandon-failed');
  const { answer, give } = answerLater<void>();
  let hangs = false;
  const backend = scriptedBackend({
    attempt: () => Promise.resolve(contended),
    awaitTurn: () => noAnswer<undefined>(),
    abandon: () => (hangs ? noAnswer<void>() : answer),
  });
  const locks = locksOn(backend);
  const giveUp = async (): Promise<void> => {
    const controller = new AbortController();
    const { signal } = controller;
    const before = backend.of('awaitTurn').length;
    const waits = Promise.allSettled(Array.from({ length: MANY }, () => locks.lock('a').acquire({ signal })));
    await vi.waitUntil(() => backend.of('awaitTurn').length === before + MANY, {
      timeout: 20_000,
      interval: 5,
    });
    controller.abort();
    expect((await waits).every(({ status }) => status === 'rejected')).toBe(true);
  };
  await giveUp();
  expect(new Set(backend.of('abandon').map(({ ids }) => ids[0])).size).toBe(128);
  give();
  await vi.waitUntil(() => new Set(backend.of('abandon').map(({ ids }) => ids[0])).size === MANY, {
    timeout: 20_000,
    interval: 5,
  });
  hangs = true;
  await giveUp();
  const startedAt = performance.now();
  await locks.close();
  expect(performance.now() - startedAt).toBeLessThan(4_000);
  expect(new Set(backend.of('abandon').map(({ ids }) => ids[0])).size).toBe(2 * MANY);
  expect(failures).toHaveLength(MANY);
});

test('a signal that aborts after the lease was granted ends no wait any more, whatever comes late', async () => {
  const late = answerLater<void>();
  let attempts = 0;
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) => {
      attempts += 1;
      return Promise.resolve<Attempt>(
        attempts === 1 ? { status: 'contended', retryAfterMs: 10 } : granted(request, call),
      );
    },
    awaitTurn: (request, call) => late.answer.then(() => grant(request, call)),
  });
  const locks = locksOn(backend);
  const controller = new AbortController();
  const lease = await locks.lock('a').acquire({ signal: controller.signal });
  controller.abort();
  late.give();
  await settled();
  expect(backend.of('abandon')).toEqual([]);
  lease.assertValid();
});
