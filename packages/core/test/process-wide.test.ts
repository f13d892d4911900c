import { expect, onTestFinished, test, vi } from 'vitest';
import * as core from '../src/index.ts';
import { rejectionOf, settled, stall, useFakeClock } from './fixture.ts';
import { granted, scriptedBackend } from './scripted-backend.ts';

/** A second copy of core in this process: the other module format, or another version. */
async function anotherCopy(): Promise<typeof core> {
  vi.resetModules();
  const copy = await import('../src/index.ts');
  expect(copy.createLocks).not.toBe(core.createLocks);
  return copy;
}

test('the errors of another copy of core are recognised, both ways', async () => {
  const copy = await anotherCopy();
  const theirs = new copy.LockError('LOCK_TIMEOUT', 'busy');
  expect(theirs).toBeInstanceOf(core.LockError);
  expect(core.isLockError(theirs, 'LOCK_TIMEOUT')).toBe(true);
  expect(copy.isLockError(new core.LockError('LOCK_LOST', 'gone'), 'LOCK_LOST')).toBe(true);
});

test('a lease of another copy is refused as within, with what to do', async () => {
  const copy = await anotherCopy();
  const backend = scriptedBackend();
  const theirs = await copy.createLocks(backend).lock('a').acquire();
  const mine = core.createLocks(backend).lock('a');
  await expect(mine.acquire({ within: theirs })).rejects.toMatchObject({
    code: 'LOCK_INVALID_ARGUMENT',
    message: expect.stringContaining('another copy of @locks/core'),
  });
  await theirs.release();
});

test('a backend whose errors are of another copy works, and its own errors are passed on', async () => {
  const copy = await anotherCopy();
  const refusal = new copy.LockError('LOCK_UNSUPPORTED', 'a read-only replica');
  let refuse = false;
  const backend = scriptedBackend({
    attempt: (request, _enqueue, call) =>
      refuse ? Promise.reject(refusal) : Promise.resolve(granted(request, call)),
    isRetryable: () => false,
  });
  const lock = core.createLocks(backend).lock('a');
  await (await lock.acquire()).release();
  refuse = true;
  expect(await rejectionOf(lock.acquire())).toBe('LOCK_UNSUPPORTED');
});

test('an own error class is not mistaken for LockError, nor a LockError for one derived from it', async () => {
  class Derived extends core.LockError {}
  expect(new Error('busy')).not.toBeInstanceOf(core.LockError);
  expect(new Derived('LOCK_TIMEOUT', 'busy')).toBeInstanceOf(core.LockError);
  expect(new Derived('LOCK_TIMEOUT', 'busy')).toBeInstanceOf(Derived);
  expect(new core.LockError('LOCK_TIMEOUT', 'busy')).not.toBeInstanceOf(Derived);
});

test('branches that wait for each other’s turns in locks of two copies are rejected', async () => {
  const copy = await anotherCopy();
  const a = core.createLocks(scriptedBackend(), { reentrant: true }).lock('a');
  const b = copy.createLocks(scriptedBackend(), { reentrant: true }).lock('b');
  const outcomes = await a.run(() =>
    b.run(() =>
      Promise.all([
        a.run(async () => {
          await settled();
          return rejectionOf(b.run(() => 'done'));
        }),
        b.run(async () => {
          await settled();
          return rejectionOf(a.run(() => 'done'));
        }),
      ]),
    ),
  );
  expect(outcomes.toSorted()).toEqual(['LOCK_REENTRANT', 'fulfilled']);
});

test('what a process waits for is not shared with a version that keeps it in another shape', async () => {
  const shared = globalThis as { [key: symbol]: unknown };
  // Versions with this name cannot tell which managers wait.
  const former = Symbol.for('@locks/core/lease-waits@1');
  shared[former] = { of: () => [], add() {}, delete() {} };
  onTestFinished(() => void delete shared[former]);
  vi.resetModules();
  const { leaseWaits } = await import('../src/scope/lease-waits.ts');
  expect([...leaseWaits.owners]).toEqual([]);
});

test('code that one copy runs detached is outside of the scopes of the other', async () => {
  const copy = await anotherCopy();
  const lock = core.createLocks(scriptedBackend()).lock('a', { reentrant: true });
  const theirs = copy.createLocks(scriptedBackend());
  await theirs.lock('b', { reentrant: true }).run(() => {});
  await lock.run(() => theirs.detached(() => lock.run((lease) => expect(lease.holdCount).toBe(1))));
});

test('a grant of one copy is delivered after the end of an overdue lease of the other', async () => {
  useFakeClock();
  const copy = await anotherCopy();
  const events: string[] = [];
  const mine = await core.createLocks(scriptedBackend(), { ttlMs: 1_000 }).lock('a').acquire();
  mine.signal.addEventListener('abort', () => events.push('lost'));
  stall(2_000);
  await copy.createLocks(scriptedBackend()).lock('a').acquire();
  events.push('granted');
  expect(events).toEqual(['lost', 'granted']);
});
