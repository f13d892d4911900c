import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import * as core from '../src/index.ts';
import { isLockError, LockError, lostWithResult } from '../src/errors.ts';
import { scriptedBackend } from './scripted-backend.ts';

test('an error says what it is by its code, and carries where and why', () => {
  const cause = new Error('cut');
  const error = new LockError('LOCK_LOST', 'gone', { lockName: 'a', backend: 'b', reason: 'expired', cause });
  expect(error).toBeInstanceOf(Error);
  expect(error).toMatchObject({
    name: 'LockError',
    code: 'LOCK_LOST',
    lockName: 'a',
    backend: 'b',
    reason: 'expired',
    cause,
  });
  expect('cause' in new LockError('LOCK_CLOSED', 'closed')).toBe(false);
  expect(inspect(new LockError('LOCK_CLOSED', 'closed'))).not.toContain('undefined');
});

test('isLockError recognises a LockError, and its code where one is given', () => {
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
  const loss = new LockError('LOCK_LOST', 'gone', { lockName: 'a', backend: 'b', reason: 'taken-over' });
  const error = lostWithResult(loss, undefined);
  expect(error).toMatchObject({
    code: 'LOCK_LOST',
    lockName: 'a',
    backend: 'b',
    reason: 'taken-over',
    message: 'gone',
  });
  expect('result' in error).toBe(true);
  expect('result' in loss).toBe(false);
});

test('what the store throws, whatever it is, stands as cause of LOCK_BACKEND', async () => {
  for (const cause of [new TypeError('odd'), 'a string', undefined, { code: 'ECONNRESET' }]) {
    const backend = scriptedBackend({ inspect: () => Promise.reject(cause) });
    await expect(core.createLocks(backend).inspect('a')).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
      lockName: 'a',
      cause,
    });
  }
});
