import { expect, test } from 'vitest';
import type { Attempt } from '../src/backend/types.ts';
import { codeOf, locksOn, pass, rejectionOf, settled, useFakeClock } from './fixture.ts';
import { answerLater, capabilities, noAnswer, scriptedBackend } from './scripted-backend.ts';

const shared = {
  capabilities: { ...capabilities, modes: ['exclusive', 'shared'] as const },
  downgrade: () => Promise.resolve({ status: 'held' as const }),
};

test('close with drainMs renews the leases and resolves when they are released', async () => {
  useFakeClock();
  const backend = scriptedBackend(shared);
  const locks = locksOn(backend, { ttlMs: 3_000 });
  const lease = await locks.readWriteLock('a').write.acquire();
  let closed = false;
  const closing = locks.close({ drainMs: 60_000 }).then(() => (closed = true));
  await pass(20_000);
  expect(closed).toBe(false);
  expect(lease.validForMs).toBeGreaterThan(0);
  expect(backend.of('renew').length).toBeGreaterThan(10);
  await lease.renew();
  await lease.downgrade();
  await lease.release();
  await pass(1);
  await closing;
  expect(backend.of('release')).toHaveLength(1);
  expect(backend.of('abandon')).toHaveLength(0);
});

test('while the manager drains every acquire is refused at once, and nothing is sent', async () => {
  useFakeClock();
  const backend = scriptedBackend();
  const locks = locksOn(backend);
  const lock = locks.lock('b');
  const lease = await locks.lock('a').acquire();
  const closing = locks.close({ drainMs: 1_000 });
  const before = backend.sent.length;
  for (const call of [
    lock.acquire(),
    lock.tryAcquire(),
    lock.run(() => {}),
    locks.all([lock]).acquire(),
    locks.inspect('a'),
    locks.isLocked('a'),
    locks.ping(),
  ])
    expect(await rejectionOf(call)).toBe('LOCK_CLOSED');
  expect(backend.sent).toHaveLength(before);
  await lease.release();
  await pass(1);
  await closing;
});

test('waiters are rejected at once, not when the time is over', async () => {
  useFakeClock();
  const backend = scriptedBackend({
    attempt: (request, _, call) =>
      request.resource === 'a'
        ? Promise.resolve({
            status: 'granted',
            grant: { request, fencingToken: 1n, countedFrom: call.now() },
          })
        : noAnswer<Attempt>(),
  });
  const locks = locksOn(backend);
  const lease = await locks.lock('a').acquire();
  const waiting = rejectionOf(locks.lock('b').acquire());
  await settled();
  const closing = locks.close({ drainMs: 1_000 });
  expect(await waiting).toBe('LOCK_CLOSED');
  expect(lease.validForMs).toBeGreaterThan(0);
  await lease.release();
  await pass(1);
  await closing;
});

test('a lease may be re-entered while the manager drains, also by callers that wait for their turn in it', async () => {
  useFakeClock();
  const backend = scriptedBackend();
  const locks = locksOn(backend, { reentrant: true });
  const { answer, give } = answerLater<void>();
  const entered: string[] = [];
  const working = locks.lock('a').run(async (lease) => {
    const child = await locks.lock('a').acquire({ within: lease });
    const sibling = locks.lock('a').acquire({ within: lease });
    await answer;
    const grandchild = await locks.lock('a').tryAcquire({ within: child });
    entered.push(grandchild?.name ?? 'refused');
    await grandchild?.release();
    await child.release();
    entered.push((await sibling).name);
    await (await sibling).release();
  });
  await settled();
  const closing = locks.close({ drainMs: 1_000 });
  await settled();
  give();
  await pass(1);
  await pass(1);
  await working.catch(() => {});
  expect(entered).toEqual(['a', 'a']);
  await pass(1_000);
  await closing;
});

test('a lease held when the time is over is lost with reason closed', async () => {
  useFakeClock();
  const backend = scriptedBackend();
  const locks = locksOn(backend);
  const lease = await locks.lock('a').acquire();
  const { signal } = lease;
  const closing = locks.close({ drainMs: 1_000 });
  await pass(990);
  expect(signal.aborted).toBe(false);
  await pass(20);
  await closing;
  expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'closed' });
  expect(codeOf(() => locks.lock('a'))).toBe('LOCK_CLOSED');
});

test('a second close without drainMs ends the draining; one with drainMs does not', async () => {
  useFakeClock();
  const backend = scriptedBackend();
  const locks = locksOn(backend);
  const lease = await locks.lock('a').acquire();
  const closing = locks.close({ drainMs: Number.POSITIVE_INFINITY });
  await pass(100_000);
  void locks.close({ drainMs: 1 });
  await pass(100_000);
  expect(lease.signal.aborted).toBe(false);
  const second = locks.close();
  await pass(1);
  await Promise.all([closing, second]);
  expect(lease.signal.reason).toMatchObject({ reason: 'closed' });
});

test('without leases close resolves at once', async () => {
  const backend = scriptedBackend();
  await locksOn(backend).close({ drainMs: 60_000 });
});

test.each([-1, Number.NaN, '5', null])('a drainMs of %s is refused, and closes nothing', async (drainMs) => {
  const locks = locksOn(scriptedBackend());
  expect(await rejectionOf(locks.close({ drainMs: drainMs as never }))).toBe('LOCK_INVALID_ARGUMENT');
});
