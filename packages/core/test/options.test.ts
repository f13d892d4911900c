import { expect, test } from 'vitest';
import type { LockOptions } from '../src/options.ts';
import { ACQUIRE_TABLE, builtInDefaults, checkTtl, LOCK_TABLE, resolveOptions } from '../src/options.ts';
import { codeOf, locksOn, rejectionOf } from './fixture.ts';
import { capabilities, scriptedBackend } from './scripted-backend.ts';

const ttl = { minMs: 50, stepMs: 1 };
const defaults = builtInDefaults(ttl);

const bad: [keyof LockOptions, readonly unknown[]][] = [
  [
    'ttlMs',
    [0, -1, 49, 50.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 31_536_000_001, '1000', null, 1000n, {}],
  ],
  ['waitMs', [-1, -0.5, Number.NaN, Number.NEGATIVE_INFINITY, '5', null, true, 5n]],
  ['renewal', ['never', '', true, false, null, 1]],
  ['maxHoldMs', [0, -1, 0.5, Number.NaN, '5', null]],
  ['label', ['\ud800', 'a\nb', '\u0000', '\u0085', 'x'.repeat(257), 'é'.repeat(129), 5, null]],
  ['reentrant', ['yes', 1, null]],
];

const rows = bad.flatMap(([name, values]) => values.map((value) => [name, value] as const));

test.each(rows)('%s of %o is refused', (name, value) => {
  const options = { [name]: value } as LockOptions;
  expect(() => resolveOptions(LOCK_TABLE, defaults, options, ttl)).toThrow(
    expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT', message: expect.stringContaining(name) }),
  );
});

test.each([
  ['ttlMs', [50, 31_536_000_000]],
  ['waitMs', [0, 0.5, 1e15, Number.POSITIVE_INFINITY]],
  ['renewal', ['auto', 'manual']],
  ['maxHoldMs', [1, Number.POSITIVE_INFINITY]],
  ['label', ['', 'x'.repeat(256), 'host:7 – größer 🚀']],
  ['reentrant', [true, false]],
])('%s accepts the ends of its range', (name, values) => {
  for (const value of values)
    expect(codeOf(() => resolveOptions(LOCK_TABLE, defaults, { [name]: value }, ttl))).toBe('nothing thrown');
});

test.each([
  ['signal', 5],
  ['signal', new AbortController()],
  ['signal', {}],
  ['within', {}],
  ['within', null],
  ['ttlMs', 0],
  ['maxHoldMs', -1],
])('an acquire refuses %s of %o, and nothing is sent', async (name, value) => {
  const backend = scriptedBackend();
  const lock = locksOn(backend).lock('a');
  expect(await rejectionOf(lock.acquire({ [name]: value }))).toBe('LOCK_INVALID_ARGUMENT');
  expect(await rejectionOf(lock.tryAcquire({ [name]: value }))).toBe('LOCK_INVALID_ARGUMENT');
  expect(await rejectionOf(lock.run(() => {}, { [name]: value }))).toBe('LOCK_INVALID_ARGUMENT');
  expect(backend.sent).toEqual([]);
});

test.each([null, 5, 'fast', () => {}])('options that are %o are refused', async (options) => {
  const locks = locksOn(scriptedBackend());
  expect(codeOf(() => locks.lock('a', options as never))).toBe('LOCK_INVALID_ARGUMENT');
  expect(await rejectionOf(locks.lock('a').acquire(options as never))).toBe('LOCK_INVALID_ARGUMENT');
});

test.each([
  ['ttl', 'ttlMs'],
  ['wait', 'waitMs'],
  ['maxHold', 'maxHoldMs'],
  ['TTL', 'ttlMs'],
])('an unknown option %s is refused with a hint at %s', (given, meant) => {
  expect(() => resolveOptions(LOCK_TABLE, defaults, { [given]: 5 }, ttl)).toThrow(
    expect.objectContaining({
      code: 'LOCK_INVALID_ARGUMENT',
      message: expect.stringContaining(`Did you mean ${meant}?`),
    }),
  );
});

test.each(['timeout', 'toString', 'constructor', '__proto', ''])(
  'an unknown option %o is refused with what is known',
  (given) => {
    expect(() => resolveOptions(LOCK_TABLE, defaults, { [given]: 5 } as LockOptions, ttl)).toThrow(
      expect.objectContaining({
        code: 'LOCK_INVALID_ARGUMENT',
        message: expect.stringContaining('It has ttlMs'),
      }),
    );
  },
);

test.each(['signal', 'within'])('%s belongs to one acquire: a lock and a manager refuse it', (name) => {
  const options = { [name]: undefined } as LockOptions;
  const locks = locksOn(scriptedBackend());
  expect(() => locks.lock('a', options)).toThrow(
    expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT', message: expect.stringContaining('acquire') }),
  );
  expect(codeOf(() => locksOn(scriptedBackend(), options))).toBe('LOCK_INVALID_ARGUMENT');
});

test('reentrant belongs to a lock: an acquire refuses it', async () => {
  const lock = locksOn(scriptedBackend()).lock('a');
  await expect(lock.acquire({ reentrant: true } as never)).rejects.toMatchObject({
    code: 'LOCK_INVALID_ARGUMENT',
    message: expect.stringContaining('It belongs to lock()'),
  });
});

test('what is not said is inherited, from the acquire to the lock to the manager', () => {
  const manager = resolveOptions(LOCK_TABLE, defaults, { ttlMs: 5_000, waitMs: 100, label: 'worker' }, ttl);
  const lock = resolveOptions(LOCK_TABLE, manager, { waitMs: 200, renewal: 'manual', ttlMs: undefined }, ttl);
  const acquire = resolveOptions(ACQUIRE_TABLE, lock, { maxHoldMs: 9_000, waitMs: undefined }, ttl);
  expect(acquire).toMatchObject({
    ttlMs: 5_000,
    waitMs: 200,
    label: 'worker',
    autoRenew: false,
    maxHoldMs: 9_000,
  });
  expect(resolveOptions(ACQUIRE_TABLE, lock, undefined, ttl)).toBe(lock);
});

test('the defaults are half a minute of ttl and ten seconds of waiting', () => {
  expect(defaults).toMatchObject({
    ttlMs: 30_000,
    waitMs: 10_000,
    autoRenew: true,
    maxHoldMs: Number.POSITIVE_INFINITY,
    reentrant: false,
  });
  expect(defaults.label).toMatch(new RegExp(`^.+:${process.pid}$`));
});

test('a ttl is rounded up to the step of the backend, the default too', () => {
  const seconds = { minMs: 2_000, stepMs: 1_000 };
  expect(checkTtl(2_001, seconds)).toBe(3_000);
  expect(checkTtl(2_000, seconds)).toBe(2_000);
  expect(builtInDefaults({ minMs: 40_500, stepMs: 1_000 }).ttlMs).toBe(41_000);
});

test('a backend’s floor does not go below what the drift margin leaves', () => {
  expect(codeOf(() => checkTtl(9, { minMs: 1, stepMs: 1 }))).toBe('LOCK_INVALID_ARGUMENT');
  expect(checkTtl(10, { minMs: 1, stepMs: 1 })).toBe(10);
});

test('the backend is asked with the rounded ttl', async () => {
  const ttls: number[] = [];
  const backend = scriptedBackend({
    capabilities: { ...capabilities, ttl: { minMs: 1_000, stepMs: 1_000 } },
    attempt: (request, _enqueue, call) => {
      ttls.push(request.ttlMs);
      return Promise.resolve({
        status: 'granted',
        grant: { request, fencingToken: 1n, countedFrom: call.now() },
      });
    },
  });
  const lease = await locksOn(backend).lock('a').acquire({ ttlMs: 1_500 });
  expect(ttls).toEqual([2_000]);
  await lease.renew(2_500);
  expect(backend.of('renew')[0]?.ttlMs).toBe(3_000);
});

test('a lease that is valid, but for less than asked, says so, which is no loss', async () => {
  const lease = await locksOn(scriptedBackend()).lock('a', { ttlMs: 1_000 }).acquire();
  expect(() => lease.assertValid(5_000)).toThrow(
    expect.objectContaining({ code: 'LOCK_EXPIRES_SOON', reason: undefined }),
  );
  lease.assertValid();
});

test.each([Number.NaN, -1, '5', 2 ** 53])('assertValid refuses %o as what must remain', async (value) => {
  const lease = await locksOn(scriptedBackend()).lock('a').acquire();
  expect(codeOf(() => lease.assertValid(value as number))).toBe('LOCK_INVALID_ARGUMENT');
  expect(codeOf(() => lease.assertValid(1_000))).toBe('nothing thrown');
  expect(codeOf(() => lease.assertValid(30_000))).toBe('LOCK_EXPIRES_SOON');
});

test.each([undefined, null, 'work', {}])('run refuses %o as work, and nothing is sent', async (work) => {
  const backend = scriptedBackend();
  expect(
    await rejectionOf(
      locksOn(backend)
        .lock('a')
        .run(work as never),
    ),
  ).toBe('LOCK_INVALID_ARGUMENT');
  expect(backend.sent).toEqual([]);
});

test.each([
  ['a misspelt option', { aquisitionId: 'abc' }],
  ['an id in place of the options', 'abc'],
  ['null', null],
  ['an empty id', { acquisitionId: '' }],
  ['an id that is no text', { acquisitionId: 5 }],
])('forceRelease refuses %s, and ends no hold', async (_, options) => {
  const backend = scriptedBackend();
  const released = locksOn(backend).forceRelease('a', options as never);
  await expect(released).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
  expect(backend.sent).toEqual([]);
});

test('a semaphore names its option weight among those that exist', async () => {
  const backend = scriptedBackend({
    capabilities: { ...capabilities, modes: ['permit'] },
    resize: () => Promise.resolve({ status: 'set' }),
  });
  const slots = locksOn(backend).semaphore('a', 3);
  for (const [call, caller] of [
    [slots.acquire({ wieght: 2 } as never), 'acquire()'],
    [slots.tryAcquire({ wieght: 2 } as never), 'tryAcquire()'],
    [slots.run(() => {}, { wieght: 2 } as never), 'run()'],
  ] as const)
    await expect(call).rejects.toThrow(`${caller} has no option "wieght". Did you mean weight? It has ttlMs`);
  await expect(slots.acquire({ weight: 4 })).rejects.toThrow('weight must be a whole number from 1 to 3');
  expect(backend.sent).toEqual([]);
});
