import { expect, test } from 'vitest';
import type { RenewItem, RenewalStatus } from '../../src/backend/types.ts';
import { listenTo, locksOn, pass, useFakeClock } from '../fixture.ts';
import { held, noAnswer, scriptedBackend } from '../scripted-backend.ts';

const unknown = { status: 'unknown', error: new Error('no connection') } as const;

test('a renewal without a clear answer is repeated at a third of what is left', async () => {
  useFakeClock();
  const failed = listenTo('locks:renewal-failed');
  const backend = scriptedBackend({ renew: (items) => Promise.resolve(items.map(() => unknown)) });
  await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  const start = performance.now();
  await pass(30_000);
  const times = backend.of('renew').map((sent) => sent.at - start);
  const deadline = 30_000 - 302;
  expect(times.length).toBeGreaterThan(5);
  times.slice(1).forEach((at, index) => {
    const before = times[index] ?? 0;
    expect(at - before).toBeGreaterThanOrEqual(Math.min((deadline - before) / 3, 5) - 1);
    expect(at - before).toBeLessThanOrEqual(Math.max((deadline - before) / 3, 5) + 1);
  });
  expect(failed).toHaveLength(times.length);
  expect(failed[0]).toMatchObject({
    name: 'a',
    backend: 'scripted',
    error: unknown.error,
    remainingMs: deadline - 10_000,
  });
});

test('an unclear answer moves nothing: the lease ends when it would have', async () => {
  useFakeClock();
  const backend = scriptedBackend({ renew: () => Promise.reject(new Error('cut')) });
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  const { signal } = lease;
  await pass(29_697);
  expect(signal.aborted).toBe(false);
  await pass(1);
  expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'unconfirmed' });
});

test('a renewal that succeeds after failures keeps the lease, and the rhythm goes on', async () => {
  useFakeClock();
  let failures = 3;
  const backend = scriptedBackend({
    renew: (items) => {
      failures -= 1;
      return failures >= 0 ? Promise.reject(new Error('cut')) : Promise.resolve(held(items));
    },
  });
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  await pass(29_000);
  const sentAt = backend.of('renew')[3]?.at ?? 0;
  expect(lease.validForMs).toBe(sentAt + 29_698 - performance.now());
  await pass(sentAt + 10_000 - performance.now());
  expect(backend.of('renew').at(-1)?.at).toBe(sentAt + 10_000);
});

test('one lease’s unclear answer does not hurry the renewals of the others', async () => {
  useFakeClock();
  const locks = locksOn(
    scriptedBackend({
      renew: (items) => {
        rounds.push(items.length);
        return Promise.resolve(
          items.map(({ grant }) => (grant.request.resource === 'bad' ? unknown : { status: 'held' })),
        );
      },
    }),
    { ttlMs: 30_000 },
  );
  const rounds: number[] = [];
  await locks.lock('bad').acquire();
  for (let index = 0; index < 10; index += 1) await locks.lock(`good-${index}`).acquire();
  await pass(29_000);
  const others = rounds.filter((count) => count > 1).length;
  expect(others).toBeLessThanOrEqual(4);
});

test('during an outage a lease is not sent again with every round of the others', async () => {
  useFakeClock();
  const backend = scriptedBackend({ renew: (items) => Promise.resolve(items.map(() => unknown)) });
  const locks = locksOn(backend, { ttlMs: 30_000 });
  for (let index = 0; index < 200; index += 1) {
    await locks.lock(`name-${index}`).acquire();
    await pass(50);
  }
  await pass(30_000);
  const items = backend.of('renew').reduce((sum, sent) => sum + sent.ids.length, 0);
  // By itself a lease is sent about twenty times on its way to the end.
  expect(items / 200).toBeLessThan(40);
});

test('an answer that says lost ends the lease at once, with the store’s reason', async () => {
  useFakeClock();
  const lost = listenTo('locks:lost');
  const backend = scriptedBackend({
    renew: (items) => Promise.resolve(items.map(() => ({ status: 'lost', reason: 'taken-over' }))),
  });
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  const { signal } = lease;
  await pass(10_000);
  expect(signal.reason).toMatchObject({
    code: 'LOCK_LOST',
    reason: 'taken-over',
    lockName: 'a',
    backend: 'scripted',
  });
  expect(lost).toMatchObject([{ name: 'a', reason: 'taken-over', heldMs: 10_000 }]);
  await pass(60_000);
  expect(backend.of('renew')).toHaveLength(1);
  expect(lost).toHaveLength(1);
});

test('a renewal that the store holds for less than the ttl is repeated in time', async () => {
  useFakeClock();
  const backend = scriptedBackend({
    renew: (items) => Promise.resolve(items.map(() => ({ status: 'held', validForMs: 6_000 }))),
  });
  const lease = await locksOn(backend, { ttlMs: 6_000 }).lock('a').acquire();
  await pass(30_000);
  expect(lease.signal.aborted).toBe(false);
  expect(backend.of('renew')).toHaveLength(15);
});

test('each lease gets its own answer of a batch', async () => {
  useFakeClock();
  const answers: Record<string, RenewalStatus> = {
    good: { status: 'held' },
    gone: { status: 'lost', reason: 'force-released' },
    silent: unknown,
  };
  const backend = scriptedBackend({
    renew: (items) => Promise.resolve(items.map((item) => answers[item.grant.request.resource] ?? unknown)),
  });
  const locks = locksOn(backend, { ttlMs: 30_000 });
  const [good, gone, silent] = await Promise.all(
    ['good', 'gone', 'silent'].map((name) => locks.lock(name).acquire()),
  );
  await pass(10_001);
  expect(good?.validForMs).toBe(29_697);
  expect(gone?.signal.reason).toMatchObject({ reason: 'force-released' });
  expect(silent?.validForMs).toBe(19_697);
});

test.each([
  ['nothing', undefined],
  ['too few answers', []],
  ['no list', { status: 'held' }],
  ['a null', [null]],
  ['an unknown word', [{ status: 'perhaps' }]],
  ['a time that is no number', [{ status: 'held', validForMs: Number.NaN }]],
  ['a time in words', [{ status: 'held', validForMs: '30000' }]],
])('a backend that answers a renewal with %s confirms nothing and breaks nothing', async (_what, answer) => {
  useFakeClock();
  const failed = listenTo('locks:renewal-failed');
  const backend = scriptedBackend({ renew: () => Promise.resolve(answer as never) });
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  await pass(10_001);
  expect(failed).toHaveLength(1);
  expect(lease.validForMs).toBe(19_697);
  await pass(20_000);
  expect(lease.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'unconfirmed' });
});

test('a backend that throws where it should reject is one that does not answer', async () => {
  useFakeClock();
  const backend = scriptedBackend({
    renew: (): never => {
      throw new Error('thrown, not rejected');
    },
  });
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  await pass(20_000);
  expect(lease.validForMs).toBe(9_698);
});

test('a session without an end of its own is asked again after a renewal without an answer', async () => {
  useFakeClock();
  const asked: (readonly RenewItem[])[] = [];
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) =>
      Promise.resolve({
        status: 'granted',
        grant: {
          request,
          fencingToken: 1n,
          countedFrom: call.now(),
          session: { validUntil: () => Number.POSITIVE_INFINITY },
        },
      }),
    renew: (items) => {
      asked.push(items);
      return asked.length === 1 ? noAnswer() : Promise.resolve([{ status: 'lost', reason: 'taken-over' }]);
    },
  });
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  await pass(30_000);
  expect(asked).toHaveLength(2);
  expect(lease.signal.reason).toMatchObject({ reason: 'taken-over' });
});

test('a lease that ends unconfirmed is taken out of the store, where a renewal may have kept it', async () => {
  useFakeClock();
  const backend = scriptedBackend({ renew: () => new Promise(() => {}) });
  const lease = await locksOn(backend, { ttlMs: 30_000 }).lock('a').acquire();
  await pass(29_000);
  expect(backend.of('abandon')).toHaveLength(0);
  await pass(1_000);
  expect(lease.signal.reason).toMatchObject({ reason: 'unconfirmed' });
  expect(backend.of('abandon').map(({ ids }) => ids)).toEqual([[lease.acquisitionId]]);
});

test('a lease that merely expires is left to the store, which ends it by itself', async () => {
  useFakeClock();
  const backend = scriptedBackend();
  const lease = await locksOn(backend, { ttlMs: 30_000, renewal: 'manual' }).lock('a').acquire();
  await pass(30_000);
  expect(lease.signal.reason).toMatchObject({ reason: 'expired' });
  expect(backend.of('abandon')).toHaveLength(0);
});
