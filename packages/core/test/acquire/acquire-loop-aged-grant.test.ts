import { expect, test } from 'vitest';
import type { Grant, LockBackend, RenewalStatus } from '../../src/backend/types.ts';
import { locksOn, pass, rejectionOf, settled, useFakeClock } from '../fixture.ts';
import {
  answerLater,
  contended,
  grant,
  granted,
  held,
  noAnswer,
  scriptedBackend,
} from '../scripted-backend.ts';

const options = { ttlMs: 30_000, waitMs: 60_000 };

/** A store whose hand-offs have two seconds left. */
function handingOver(script: Partial<LockBackend> = {}, more: Partial<Grant> = {}) {
  return scriptedBackend({
    attempt: () => Promise.resolve(contended),
    awaitTurn: (request, call) => Promise.resolve(grant(request, call, { validForMs: 2_000, ...more })),
    ...script,
  });
}

test('a hand-off with less than two thirds of its ttl left is renewed before it is delivered', async () => {
  const { answer, give } = answerLater<void>();
  const backend = handingOver({ renew: (items) => answer.then(() => held(items)) });
  const acquiring = locksOn(backend, options).lock('a').acquire();
  await settled();
  expect(backend.of('renew')).toMatchObject([{ ttlMs: 30_000 }]);
  give();
  const lease = await acquiring;
  expect(lease.validForMs).toBeGreaterThan(29_000);
  lease.assertValid(5_000);
  expect(backend.of('abandon')).toEqual([]);
  expect(backend.of('attempt')).toHaveLength(1);
});

test('a renewed hand-off counts from when the renewal was sent, and for as long as the store says', async () => {
  useFakeClock();
  const { answer, give } = answerLater<void>();
  const renewed: readonly RenewalStatus[] = [{ status: 'held', validForMs: 20_000 }];
  const backend = handingOver({
    awaitTurn: (request, call) =>
      Promise.resolve(grant(request, call, { validForMs: 2_000, countedFrom: call.now() - 300 })),
    renew: () => answer.then(() => renewed),
  });
  const acquiring = locksOn(backend, options).lock('a').acquire();
  await settled();
  await pass(1_000);
  give();
  expect((await acquiring).validForMs).toBe(20_000 - 202 - 1_000);
});

test('a hand-off with enough left is delivered as it is', async () => {
  const backend = handingOver({}, { validForMs: 20_300 });
  await locksOn(backend, options).lock('a').acquire();
  expect(backend.of('renew')).toEqual([]);
});

test('a hand-off that looks over is renewed too: the request that it counts from may be older than the ttl', async () => {
  const backend = scriptedBackend({
    attempt: () => Promise.resolve(contended),
    awaitTurn: (request, call) => Promise.resolve(grant(request, call, { countedFrom: call.now() - 31_000 })),
  });
  const lease = await locksOn(backend, options).lock('a').acquire();
  expect(lease.validForMs).toBeGreaterThan(29_000);
  expect(backend.of('abandon')).toEqual([]);
});

test('a lease that nobody waited for, and whose answer came late, is renewed before it is delivered', async () => {
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) =>
      Promise.resolve(granted(request, call, { countedFrom: call.now() - 20_000 })),
  });
  const lock = locksOn(backend, options).lock('a');
  for (const lease of [await lock.acquire(), await lock.tryAcquire()])
    expect(lease?.validForMs).toBeGreaterThan(29_000);
  expect(backend.of('attempt')).toHaveLength(2);
  expect(backend.of('renew')).toHaveLength(2);
});

test.each<[string, LockBackend['renew'], number]>([
  ['is lost', () => Promise.resolve([{ status: 'lost', reason: 'taken-over' }]), 2],
  ['fails', () => Promise.reject(new Error('down')), 1],
])(
  'a late lease whose renewal %s is delivered with what is left, or not at all',
  async (_, renew, attempts) => {
    let isFirst = true;
    const backend = scriptedBackend({
      attempt: (request, _enqueue, call) => {
        const countedFrom = call.now() - (isFirst ? 20_000 : 0);
        isFirst = false;
        return Promise.resolve(granted(request, call, { countedFrom }));
      },
      renew,
    });
    const lease = await locksOn(backend, options).lock('a').acquire();
    expect(backend.of('attempt')).toHaveLength(attempts);
    expect(lease.validForMs < 10_000).toBe(attempts === 1);
  },
);

test('a lease that comes in time is delivered after one request', async () => {
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) =>
      Promise.resolve(granted(request, call, { countedFrom: call.now() - 9_000 })),
  });
  await locksOn(backend, options).lock('a').acquire();
  expect(backend.of('renew')).toEqual([]);
});

test.each<[string, LockBackend['renew']]>([
  ['is lost', () => Promise.resolve([{ status: 'lost', reason: 'taken-over' }])],
  ['fails', () => Promise.reject(new Error('down'))],
  ['leaves nothing', () => Promise.resolve([{ status: 'held', validForMs: 0 }])],
])(
  'a hand-off whose renewal %s is abandoned, and the next attempt follows after a pause',
  async (_, renew) => {
    useFakeClock();
    const backend = handingOver({ renew });
    const acquiring = rejectionOf(
      locksOn(backend, { ...options, waitMs: 1_000 })
        .lock('a')
        .acquire(),
    );
    await settled();
    expect(backend.of('abandon')).toHaveLength(1);
    await pass(1_000);
    expect(await acquiring).toBe('LOCK_BACKEND');
    // 20 ms, 40 ms, 80 ms …: not in a tight loop.
    expect(backend.of('attempt').length).toBeLessThan(9);
    expect(new Set(backend.of('attempt').flatMap(({ ids }) => ids)).size).toBe(backend.of('attempt').length);
  },
);

test('a caller that gives up while the hand-off is renewed leaves nothing', async () => {
  const backend = handingOver({ renew: noAnswer });
  const controller = new AbortController();
  const acquiring = locksOn(backend, options).lock('a').acquire({ signal: controller.signal });
  acquiring.catch(() => {});
  await settled();
  controller.abort(new Error('enough'));
  await expect(acquiring).rejects.toThrow('enough');
  expect(backend.of('abandon')).toHaveLength(1);
});

test('a caller whose time is over while the hand-off is renewed has waited in vain: the store has not failed', async () => {
  useFakeClock();
  const unknown: readonly RenewalStatus[] = [
    { status: 'unknown', error: new Error('no answer before the deadline') },
  ];
  const backend = handingOver({
    renew: (_, call) =>
      new Promise((resolve) => setTimeout(() => resolve(unknown), call.deadline - call.now() - 1)),
  });
  const acquiring = rejectionOf(
    locksOn(backend, { ...options, waitMs: 1_000 })
      .lock('a')
      .acquire(),
  );
  await pass(1_000);
  expect(await acquiring).toBe('LOCK_TIMEOUT');
  expect(backend.of('abandon')).toHaveLength(1);
});

test('the backend gets its very own grant to renew', async () => {
  const seen: unknown[] = [];
  const given: Grant[] = [];
  const backend = handingOver({
    awaitTurn(request, call) {
      given.push(grant(request, call, { validForMs: 2_000 }));
      return Promise.resolve(given[0]);
    },
    renew(items) {
      seen.push(...items.map((item) => item.grant));
      return Promise.resolve(held(items));
    },
    release(one) {
      seen.push(one);
      return Promise.resolve('released');
    },
  });
  await (await locksOn(backend, options).lock('a').acquire()).release();
  expect(seen).toHaveLength(2);
  expect(seen.every((one) => one === given[0])).toBe(true);
});

test('a hand-off that comes as the answer to an attempt, after a wait, is renewed too', async () => {
  let attempts = 0;
  const backend = scriptedBackend({
    attempt(request, _enqueue, call) {
      attempts += 1;
      return Promise.resolve(attempts === 1 ? contended : granted(request, call, { validForMs: 2_000 }));
    },
    awaitTurn: () => Promise.reject(new Error('down')),
  });
  const lease = await locksOn(backend, options).lock('a').acquire();
  expect(lease.validForMs).toBeGreaterThan(29_000);
  expect(backend.of('abandon')).toEqual([]);
  expect(lease.acquisitionId).toBe(backend.of('attempt')[0]?.ids[0]);
});
