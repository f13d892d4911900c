import { expect, test, vi } from 'vitest';
import * as core from '../src/index.ts';
import { isLockError, LockError, lostWithResult } from '../src/errors.ts';
import { rejectionOf } from './fixture.ts';
import { granted, scriptedBackend } from './scripted-backend.ts';

/** A second copy of core in this process, as two versions of it in one dependency tree are. */
async function anotherCopy(): Promise<typeof core> {
  vi.resetModules();
  const copy = await import('../src/index.ts');
  expect(copy.LockError).not.toBe(core.LockError);
  return copy;
}

test('an error says what it is by its code, and carries where and why', () => {
  const cause = new Error('cut');
  const error = new LockError('LOCK_LOST', 'gone', { resource: 'a', backend: 'b', reason: 'expired', cause });
  expect(error).toBeInstanceOf(Error);
  expect(error).toMatchObject({
    name: 'LockError',
    code: 'LOCK_LOST',
    resource: 'a',
    backend: 'b',
    reason: 'expired',
    cause,
  });
  expect('cause' in new LockError('LOCK_CLOSED', 'closed')).toBe(false);
});

test('isLockError tells a LockError, with its code where one is given', () => {
  const error = new LockError('LOCK_TIMEOUT', 'busy');
  expect(isLockError(error)).toBe(true);
  expect(isLockError(error, 'LOCK_TIMEOUT')).toBe(true);
  expect(isLockError(error, 'LOCK_LOST')).toBe(false);
});

test.each([
  undefined,
  null,
  'LOCK_TIMEOUT',
  5,
  {},
  { code: 'LOCK_TIMEOUT' },
  new Error('LOCK_TIMEOUT'),
  () => {},
])('%o is no LockError', (value) => {
  expect(isLockError(value)).toBe(false);
});

test('the loss that run reports is the loss, with what the work had returned', () => {
  const loss = new LockError('LOCK_LOST', 'gone', { resource: 'a', backend: 'b', reason: 'taken-over' });
  const told = lostWithResult(loss, undefined);
  expect(told).toMatchObject({
    code: 'LOCK_LOST',
    resource: 'a',
    backend: 'b',
    reason: 'taken-over',
    message: 'gone',
  });
  expect('result' in told).toBe(true);
  expect('result' in loss).toBe(false);
});

test('the errors of another copy of core are recognised, both ways', async () => {
  const copy = await anotherCopy();
  const theirs = new copy.LockError('LOCK_TIMEOUT', 'busy');
  expect(theirs).not.toBeInstanceOf(LockError);
  expect(isLockError(theirs, 'LOCK_TIMEOUT')).toBe(true);
  expect(copy.isLockError(new LockError('LOCK_LOST', 'gone'), 'LOCK_LOST')).toBe(true);
});

test('a lease of another copy is refused as within, with what to do', async () => {
  const copy = await anotherCopy();
  const backend = scriptedBackend();
  const theirs = await copy.createLocks(backend).lock('a').acquire();
  const mine = core.createLocks(backend).lock('a');
  await expect(mine.acquire({ within: theirs })).rejects.toMatchObject({
    code: 'LOCK_INVALID_ARGUMENT',
    message: expect.stringContaining('this copy of @locks/core'),
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

test('what the store throws, whatever it is, stands as cause of LOCK_BACKEND', async () => {
  for (const cause of [new TypeError('odd'), 'a string', undefined, { code: 'ECONNRESET' }]) {
    const backend = scriptedBackend({ inspect: () => Promise.reject(cause) });
    await expect(core.createLocks(backend).inspect('a')).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
      resource: 'a',
      cause,
    });
  }
});
