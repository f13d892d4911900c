import { expect, test } from 'vitest';
import type { AcquireRequest, Attempt, Grant, LockBackend } from '../../src/backend/types.ts';
import { listenTo, locksOn, rejectionOf } from '../fixture.ts';
import { contended, grant, scriptedBackend } from '../scripted-backend.ts';

const broken: [string, (request: AcquireRequest) => unknown][] = [
  ['nothing', () => undefined],
  ['an unknown word', () => ({ status: 'maybe', token: 1n })],
  ['a grant that is missing', () => ({ status: 'granted' })],
  [
    'a grant to another id',
    (request) => ({
      status: 'granted',
      grant: { ...full(request), request: { ...request, acquisitionId: 'other' } },
    }),
  ],
  [
    'a grant without a token',
    (request) => ({ status: 'granted', grant: { ...full(request), fencingToken: undefined } }),
  ],
  [
    'a token that is no bigint',
    (request) => ({ status: 'granted', grant: { ...full(request), fencingToken: '7' } }),
  ],
  [
    'a grant that does not say since when',
    (request) => ({ status: 'granted', grant: { ...full(request), countedFrom: undefined } }),
  ],
  [
    'a grant on the wall clock',
    (request) => ({ status: 'granted', grant: { ...full(request), countedFrom: Date.now() } }),
  ],
  [
    'a duration that is no number',
    (request) => ({ status: 'granted', grant: { ...full(request), validForMs: '30000' } }),
  ],
];

function full(request: AcquireRequest): Grant {
  return { request, fencingToken: 7n, countedFrom: 0 };
}

test.each(broken)('a backend that answers an attempt with %s gives no lease', async (_what, answer) => {
  const backend = scriptedBackend({ attempt: (request) => Promise.resolve(answer(request) as Attempt) });
  expect(await rejectionOf(locksOn(backend).lock('a').acquire())).toBe('LOCK_BACKEND');
  expect(backend.of('attempt')).toHaveLength(1);
  expect(backend.of('abandon')[0]?.ids).toEqual(backend.of('attempt')[0]?.ids);
});

test('a hand-off to another id is a broken contract too', async () => {
  const backend = scriptedBackend({
    attempt: () => Promise.resolve(contended),
    awaitTurn: (request, call) => Promise.resolve(grant({ ...request, acquisitionId: 'other' }, call)),
  });
  expect(await rejectionOf(locksOn(backend).lock('a').acquire())).toBe('LOCK_BACKEND');
  expect(backend.of('abandon')[0]?.ids).toEqual(backend.of('attempt')[0]?.ids);
});

test.each<[string, Partial<LockBackend>, string]>([
  [
    'a refusal',
    { attempt: () => Promise.reject(new Error('wrong password')), isRetryable: () => false },
    'LOCK_BACKEND',
  ],
  ['a broken contract', { attempt: () => Promise.resolve(null as never) }, 'LOCK_BACKEND'],
  [
    'a conflict',
    { attempt: () => Promise.resolve({ status: 'conflict', with: { kind: 'permit', limit: 2, weight: 1 } }) },
    'LOCK_CONFLICT',
  ],
])('an acquire that ends by %s is published as locks:gave-up', async (_, script, code) => {
  const gaveUp = listenTo('locks:gave-up');
  expect(await rejectionOf(locksOn(scriptedBackend(script)).lock('a').acquire())).toBe(code);
  expect(gaveUp).toMatchObject([{ name: 'a', error: { code } }]);
});
