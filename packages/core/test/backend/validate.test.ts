import { expect, test } from 'vitest';
import type { BackendCapabilities, LockBackend } from '../../src/backend/types.ts';
import { checkBackend } from '../../src/backend/validate.ts';
import { createLocks } from '../../src/create-locks.ts';
import { codeOf, rejectionOf } from '../fixture.ts';
import { capabilities, noAnswer, scriptedBackend } from '../scripted-backend.ts';

/** The message with which a backend is refused. */
function refusalOf(backend: unknown): string {
  try {
    checkBackend(backend);
  } catch (error) {
    expect(error).toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
    return (error as Error).message;
  }
  return 'accepted';
}

function withCapabilities(more: Partial<Record<keyof BackendCapabilities, unknown>>): LockBackend {
  return scriptedBackend({ capabilities: { ...capabilities, ...more } as BackendCapabilities });
}

test.each([undefined, null, 5, 'redis://localhost', () => {}])('%o is no backend', (value) => {
  expect(codeOf(() => createLocks(value as never))).toBe('LOCK_INVALID_ARGUMENT');
});

test('a client that was not wrapped is refused with how to wrap it', () => {
  class Redis {
    readonly status = 'ready';
  }
  expect(refusalOf(new Redis())).toMatch(/as redisBackend\(client\) returns it, not an object of Redis\.$/);
});

test('a backend of another version of the interface is refused', () => {
  expect(refusalOf({ ...scriptedBackend(), spec: 'locks-backend/2' })).toContain('"locks-backend/2"');
});

test('a complete backend is accepted, and costs no call', () => {
  const backend = scriptedBackend();
  expect(refusalOf(backend)).toBe('accepted');
  createLocks(backend);
  expect(backend.sent).toEqual([]);
});

test.each(['attempt', 'abandon', 'renew', 'release', 'inspect', 'isRetryable', 'close'])(
  'a backend without %s is refused',
  (method) => {
    expect(refusalOf({ ...scriptedBackend(), [method]: undefined })).toContain(
      `the method ${method} is missing`,
    );
  },
);

test('everything that is wrong stands in one message', () => {
  const message = refusalOf({
    spec: 'locks-backend/1',
    name: '',
    capabilities: {
      tenure: 'forever',
      renewal: 'anybody',
      reach: 'galaxy',
      modes: ['exclusive', 'quantum'],
      order: 'lifo',
      fencing: true,
      ttl: { minMs: 0, stepMs: 1.5 },
      features: ['list', 'teleport'],
    },
    attempt: () => {},
    release: 'no function',
    awaitTurn: 5,
  });
  for (const fault of [
    'name must be a non-empty string',
    'the method abandon is missing',
    'the method renew is missing',
    'the method release is missing',
    'the method inspect is missing',
    'the method isRetryable is missing',
    'the method close is missing',
    'awaitTurn must be a method or absent',
    'capabilities.tenure must be one of lease, session, not "forever"',
    'capabilities.renewal must be one of any-client, own-client, not "anybody"',
    'capabilities.reach must be one of process, host, network, not "galaxy"',
    'capabilities.order must be one of fifo, cohort, none, not "lifo"',
    'capabilities.fencing must be one of durable, volatile, none, not true',
    'capabilities.modes has "quantum"',
    'capabilities.features has "teleport"',
    'capabilities.ttl needs minMs and stepMs',
    "it declares the feature 'list' but has no method list",
  ]) {
    expect(message).toContain(fault);
  }
});

test.each([
  ['nothing', undefined],
  ['null', null],
  ['a word', 'all'],
])('capabilities that are %s are refused', (_what, value) => {
  expect(refusalOf({ ...scriptedBackend(), capabilities: value })).toContain('capabilities is missing');
});

test.each([
  ['no word on who renews', { renewal: undefined }],
  ['no modes', { modes: [] }],
  ['modes that are no list', { modes: 'exclusive' }],
  ['features that are no list', { features: undefined }],
  ['no ttl', { ttl: undefined }],
  ['a ttl of null', { ttl: null }],
  ['a step of 0', { ttl: { minMs: 1, stepMs: 0 } }],
  ['a margin below 0', { ttl: { minMs: 1, stepMs: 1, marginMs: -1 } }],
  ['a margin that is no number', { ttl: { minMs: 1, stepMs: 1, marginMs: '5 s' } }],
  ['an infinite floor', { ttl: { minMs: Number.POSITIVE_INFINITY, stepMs: 1 } }],
])('a backend with %s is refused', (_what, more) => {
  expect(refusalOf(withCapabilities(more))).toContain('capabilities.');
});

test.each([
  ['list', 'list'],
  ['force-release', 'forceRelease'],
  ['many', 'attemptMany'],
] as const)('the feature %s and the method %s come together or not at all', (feature, method) => {
  expect(refusalOf(withCapabilities({ features: [feature] }))).toContain(`has no method ${method}`);
  expect(refusalOf(scriptedBackend({ [method]: noAnswer }))).toContain(
    `does not declare the feature '${feature}'`,
  );
  const both = { [method]: noAnswer, capabilities: { ...capabilities, features: [feature] } };
  expect(refusalOf(scriptedBackend(both))).toBe('accepted');
});

test('what a backend does not declare is refused when it is asked for', async () => {
  const locks = createLocks(scriptedBackend());
  expect(codeOf(() => locks.list())).toBe('LOCK_UNSUPPORTED');
  expect(await rejectionOf(locks.forceRelease('a'))).toBe('LOCK_UNSUPPORTED');
  const shared = createLocks(withCapabilities({ modes: ['shared'] }));
  expect(codeOf(() => shared.lock('a'))).toBe('LOCK_UNSUPPORTED');
});

test('bad defaults of a manager are refused when it is made', () => {
  expect(codeOf(() => createLocks(scriptedBackend(), { ttlMs: 1 }))).toBe('LOCK_INVALID_ARGUMENT');
  expect(
    codeOf(() => createLocks(withCapabilities({ ttl: { minMs: 5_000, stepMs: 1 } }), { ttlMs: 4_999 })),
  ).toBe('LOCK_INVALID_ARGUMENT');
});
