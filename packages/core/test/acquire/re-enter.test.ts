import { expect, test, vi } from 'vitest';
import type { Lease } from '../../src/lease.ts';
import { locksOn, pass, rejectionOf, settled, useFakeClock } from '../fixture.ts';
import { answerLater, scriptedBackend } from '../scripted-backend.ts';

test('run inside run of the same resource re-enters: one more hold, same lease, no call to the store', async () => {
  const backend = scriptedBackend();
  const lock = locksOn(backend).lock('a', { reentrant: true });
  await lock.run(async (outer) => {
    expect(outer.holdCount).toBe(1);
    await lock.run((inner) => {
      expect(inner.holdCount).toBe(2);
      expect(inner.fencingToken).toBe(outer.fencingToken);
      expect(inner.acquisitionId).toBe(outer.acquisitionId);
      return lock.run((innermost) => expect(innermost.holdCount).toBe(3));
    });
    expect(outer.holdCount).toBe(1);
    expect(backend.sent).toHaveLength(1);
  });
  expect(backend.sent.map((sent) => sent.method)).toEqual(['attempt', 'release']);
});

test('run re-enters through another lock object on the resource, and through functions without the lease', async () => {
  const backend = scriptedBackend();
  const locks = locksOn(backend, { reentrant: true });
  const deep = (): Promise<number> => locks.lock('a').run((lease) => lease.holdCount);
  await locks.lock('a').run(async () => {
    await locks.lock('b').run(async () => {
      expect(await deep()).toBe(2);
    });
  });
  expect(backend.of('attempt')).toHaveLength(2);
});

test('without reentrant a nested run is a stranger', async () => {
  const backend = scriptedBackend();
  const lock = locksOn(backend).lock('a');
  await lock.run(() => lock.run((lease) => expect(lease.holdCount).toBe(1)));
  expect(backend.of('attempt')).toHaveLength(2);
});

test('another resource, or another manager, is not re-entered', async () => {
  const backend = scriptedBackend();
  const [one, other] = [locksOn(backend, { reentrant: true }), locksOn(backend, { reentrant: true })];
  await one.lock('a').run(async () => {
    await one.lock('b').run(() => 'b');
    await other.lock('a').run(() => 'a');
  });
  expect(backend.of('attempt')).toHaveLength(3);
});

test('a handle never re-enters implicitly, only by within', async () => {
  const backend = scriptedBackend();
  const lock = locksOn(backend).lock('a', { reentrant: true });
  await lock.run(async (outer) => {
    const stranger = await lock.acquire();
    expect(stranger.acquisitionId).not.toBe(outer.acquisitionId);
    const child = await lock.acquire({ within: outer });
    expect(child.acquisitionId).toBe(outer.acquisitionId);
    expect(outer.holdCount).toBe(2);
    await child.release();
    await stranger.release();
  });
  expect(backend.of('attempt')).toHaveLength(2);
});

test('code run by detached is a stranger', async () => {
  const backend = scriptedBackend();
  const locks = locksOn(backend);
  const lock = locks.lock('a', { reentrant: true });
  await lock.run(() => locks.detached(() => lock.run((lease) => expect(lease.holdCount).toBe(1))));
  expect(backend.of('attempt')).toHaveLength(2);
  expect(locks.detached(() => 5)).toBe(5);
});

test('the store is released when the last handle is, in whatever order they go', async () => {
  const backend = scriptedBackend();
  const lock = locksOn(backend).lock('a');
  const root = await lock.acquire();
  const child = await lock.acquire({ within: root });
  const grandchild = await lock.acquire({ within: child });
  await root.release();
  expect(backend.of('release')).toEqual([]);
  expect(root.validForMs).toBe(0);
  expect(child.validForMs).toBeGreaterThan(0);
  await child.release();
  expect(backend.of('release')).toEqual([]);
  await grandchild.release();
  await grandchild.release();
  expect(backend.of('release')).toHaveLength(1);
});

test('a released lease admits nobody any more', async () => {
  const backend = scriptedBackend();
  const lock = locksOn(backend).lock('a');
  const root = await lock.acquire();
  const child = await lock.acquire({ within: root });
  const queued = rejectionOf(lock.acquire({ within: root }));
  await settled();
  await root.release();
  expect(await queued).toBe('LOCK_NOT_HELD');
  expect(await rejectionOf(lock.acquire({ within: root }))).toBe('LOCK_NOT_HELD');
  expect(await rejectionOf(lock.tryAcquire({ within: root }))).toBe('LOCK_NOT_HELD');
  await child.release();
  expect(await rejectionOf(lock.acquire({ within: child }))).toBe('LOCK_NOT_HELD');
  expect(backend.of('attempt')).toHaveLength(1);
});

test('a lease that is over admits nobody, also if it was never re-entered before', async () => {
  useFakeClock();
  const backend = scriptedBackend();
  const lock = locksOn(backend, { ttlMs: 1_000, renewal: 'manual' }).lock('a');
  const [released, lost] = [await lock.acquire(), await lock.acquire()];
  await released.release();
  expect(await rejectionOf(lock.acquire({ within: released }))).toBe('LOCK_NOT_HELD');
  await pass(1_000);
  expect(await rejectionOf(lock.acquire({ within: lost }))).toBe('LOCK_LOST');
  expect(backend.of('attempt')).toHaveLength(2);
});

test('a signal that has aborted and a manager that was closed admit nobody either', async () => {
  const locks = locksOn(scriptedBackend());
  const lock = locks.lock('a');
  const root = await lock.acquire();
  const reason = new Error('the user went away');
  await expect(lock.acquire({ within: root, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  expect(root.holdCount).toBe(1);
  await locks.close();
  expect(await rejectionOf(lock.acquire({ within: root }))).toBe('LOCK_CLOSED');
});

test('a lost lease admits nobody any more, and queued callers are rejected', async () => {
  useFakeClock();
  const lock = locksOn(scriptedBackend(), { ttlMs: 1_000, renewal: 'manual' }).lock('a');
  const root = await lock.acquire();
  await lock.acquire({ within: root });
  const queued = rejectionOf(lock.acquire({ within: root }));
  await pass(1_000);
  expect(await queued).toBe('LOCK_LOST');
  expect(await rejectionOf(lock.acquire({ within: root }))).toBe('LOCK_LOST');
});

test('a lease that is over by the clock is not re-entered, also before a timer said so', async () => {
  useFakeClock();
  const backend = scriptedBackend();
  const lock = locksOn(backend, { ttlMs: 1_000, renewal: 'manual' }).lock('a', { reentrant: true });
  const running = lock.run(async () => {
    // The wall clock alone: the process was stopped, no timer ran.
    vi.setSystemTime(Date.now() + 2_000);
    return lock.run((lease) => lease.holdCount);
  });
  await expect(running).rejects.toMatchObject({ code: 'LOCK_LOST', result: 1 });
  expect(backend.of('attempt')).toHaveLength(2);
});

test.each([
  ['something else', () => ({})],
  ['a copy of a lease', (lease: Lease) => ({ ...lease })],
  ['what inherits from a lease', (lease: Lease) => Object.create(lease) as Lease],
])('within refuses %s', async (_what, forge) => {
  const lock = locksOn(scriptedBackend()).lock('a');
  const lease = await lock.acquire();
  expect(await rejectionOf(lock.acquire({ within: forge(lease) as Lease }))).toBe('LOCK_INVALID_ARGUMENT');
});

test('within refuses a lease of another resource or of another manager', async () => {
  const backend = scriptedBackend();
  const [locks, others] = [locksOn(backend), locksOn(backend)];
  const lease = await locks.lock('a').acquire();
  expect(await rejectionOf(locks.lock('b').acquire({ within: lease }))).toBe('LOCK_INVALID_ARGUMENT');
  expect(await rejectionOf(others.lock('a').acquire({ within: lease }))).toBe('LOCK_INVALID_ARGUMENT');
});

test('run settles after the children that had entered have left', async () => {
  const backend = scriptedBackend();
  const lock = locksOn(backend).lock('a', { reentrant: true });
  const { answer, give } = answerLater<void>();
  let child: Promise<unknown> = Promise.resolve();
  let settledAt = 'never';
  const running = lock
    .run(() => {
      child = lock.run(() => answer);
    })
    .then(() => {
      settledAt = 'after';
    });
  await settled();
  expect(backend.of('release')).toEqual([]);
  expect(settledAt).toBe('never');
  give();
  await Promise.all([running, child]);
  expect(backend.of('release')).toHaveLength(1);
});

test('a child that starts after the work has settled is a stranger', async () => {
  const backend = scriptedBackend();
  const lock = locksOn(backend).lock('a', { reentrant: true });
  const { answer, give } = answerLater<void>();
  let later: Promise<number> = Promise.resolve(0);
  await lock.run(() => {
    later = answer.then(() => lock.run((lease) => lease.holdCount));
  });
  give();
  expect(await later).toBe(1);
  expect(backend.of('attempt')).toHaveLength(2);
});

test('children still queued when the work settles become strangers', async () => {
  const backend = scriptedBackend();
  const lock = locksOn(backend).lock('a', { reentrant: true });
  const { answer, give } = answerLater<void>();
  const children: Promise<number>[] = [];
  const running = lock.run(async () => {
    children.push(lock.run((lease) => answer.then(() => lease.holdCount)));
    children.push(lock.run((lease) => lease.holdCount));
    await settled();
  });
  await settled();
  await settled();
  give();
  await running;
  // The second one got a lease of its own.
  expect(await Promise.all(children)).toEqual([2, 1]);
  expect(backend.of('attempt')).toHaveLength(2);
});

test('a child that releases early with a grandchild still inside does not hang its parent', async () => {
  const backend = scriptedBackend();
  const lock = locksOn(backend).lock('a', { reentrant: true });
  const { answer, give } = answerLater<void>();
  let grandchild: Promise<unknown> = Promise.resolve();
  const running = lock.run(async () => {
    const child = lock.run(async (lease) => {
      grandchild = lock.run(() => answer);
      await settled();
      await lease.release();
    });
    const sibling = lock.run(() => 'entered');
    await settled();
    give();
    await Promise.all([child, grandchild]);
    return sibling;
  });
  expect(await running).toBe('entered');
  expect(backend.of('release')).toHaveLength(1);
});
