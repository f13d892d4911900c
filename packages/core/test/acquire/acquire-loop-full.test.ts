import { expect, test } from 'vitest';
import type { BackendCapabilities, LockBackend } from '../../src/backend/types.ts';
import { codeOf, listenTo, locksOn, rejectionOf } from '../fixture.ts';
import { capabilities as scripted, type ScriptedBackend, scriptedBackend } from '../scripted-backend.ts';

const capabilities: BackendCapabilities = {
  ...scripted,
  modes: ['exclusive', 'shared'],
  features: ['max-waiters'],
};

function counting(attempt?: LockBackend['attempt']): ScriptedBackend {
  return scriptedBackend({ capabilities, ...(attempt && { attempt }) });
}

test('a full queue is one request, an error with its code, and an event', async () => {
  const gaveUp = listenTo('locks:gave-up');
  const backend = counting(() => Promise.resolve({ status: 'full' }));
  const lock = locksOn(backend).lock('a', { maxWaiters: 3 });
  await expect(lock.acquire()).rejects.toMatchObject({
    code: 'LOCK_QUEUE_FULL',
    lockName: 'a',
    backend: 'scripted',
  });
  expect(backend.sent.map(({ method }) => method)).toEqual(['attempt']);
  expect(gaveUp).toHaveLength(1);
});

test('after an attempt without an answer, which may be in the queue, the id is abandoned', async () => {
  let attempts = 0;
  const backend = counting(() =>
    ++attempts === 1 ? Promise.reject(new Error('away')) : Promise.resolve({ status: 'full' }),
  );
  expect(await rejectionOf(locksOn(backend).lock('a').acquire({ maxWaiters: 3 }))).toBe('LOCK_QUEUE_FULL');
  expect(backend.of('abandon').map(({ ids }) => ids)).toEqual([backend.sent[0]?.ids]);
});

test('the limit is that of the call, or of the lock, or of the manager, and no part of a request without one', async () => {
  const limits: (number | undefined)[] = [];
  const backend = counting((request) => {
    limits.push(request.maxWaiters);
    return Promise.resolve({ status: 'full' });
  });
  const locks = locksOn(backend, { maxWaiters: 7 });
  await rejectionOf(locks.lock('a').acquire());
  await rejectionOf(locks.lock('a', { maxWaiters: 5 }).acquire());
  await rejectionOf(locks.readWriteLock('a', { maxWaiters: 5 }).read.acquire({ maxWaiters: 0 }));
  await rejectionOf(locks.all([locks.lock('a', { maxWaiters: 2 }), locks.lock('b')]).acquire());
  await rejectionOf(locksOn(backend).lock('a').acquire());
  expect(limits).toEqual([7, 5, 0, 2, undefined]);
});

test('a backend that counts no waiters refuses the limit where it is given', async () => {
  const locks = locksOn(scriptedBackend());
  expect(codeOf(() => locks.lock('a', { maxWaiters: 3 }))).toBe('LOCK_UNSUPPORTED');
  expect(await rejectionOf(locks.lock('a').acquire({ maxWaiters: 3 }))).toBe('LOCK_UNSUPPORTED');
  for (const maxWaiters of [-1, 1.5, 10_001, '3', null] as never[])
    expect(codeOf(() => locksOn(counting()).lock('a', { maxWaiters }))).toBe('LOCK_INVALID_ARGUMENT');
});
