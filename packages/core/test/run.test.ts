import { expect, test } from 'vitest';
import { asyncContext } from '../src/async-context.ts';
import { listenTo, locksOn, pass, useFakeClock } from './fixture.ts';
import { noAnswer, scriptedBackend } from './scripted-backend.ts';

test('run gives what the work returned, and the lease is released', async () => {
  const backend = scriptedBackend();
  const lock = locksOn(backend).lock('a');
  expect(await lock.run((lease) => lease.fencingToken)).toBeTypeOf('bigint');
  expect(await lock.run(async () => 'later')).toBe('later');
  expect(backend.of('release')).toHaveLength(2);
});

test.each([
  [
    'throws',
    () => {
      throw new Error('the work failed');
    },
  ],
  ['rejects', () => Promise.reject(new Error('the work failed'))],
])('work that %s keeps its error, and the lease is released', async (_how, work) => {
  const backend = scriptedBackend();
  await expect(locksOn(backend).lock('a').run(work)).rejects.toThrow('the work failed');
  expect(backend.of('release')).toHaveLength(1);
});

test('work that throws nothing at all is still a failure', async () => {
  const thrown: unknown = undefined;
  const work = locksOn(scriptedBackend())
    .lock('a')
    .run(() => Promise.reject(thrown));
  expect(
    await work.then(
      () => 'fulfilled',
      (error: unknown) => ['rejected', error],
    ),
  ).toEqual(['rejected', undefined]);
});

test('a lease lost during the work rejects the run although the work succeeded, with its value', async () => {
  useFakeClock();
  const lock = locksOn(scriptedBackend(), { ttlMs: 1_000, renewal: 'manual' }).lock('a');
  const running = lock.run(async () => {
    await pass(1_500);
    return 'done';
  });
  await expect(running).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired', result: 'done' });
});

test('work that ends with the loss itself rejects with the loss', async () => {
  useFakeClock();
  const lock = locksOn(scriptedBackend(), { ttlMs: 1_000, renewal: 'manual' }).lock('a');
  const running = lock.run(async (lease) => {
    const { signal } = lease;
    await pass(1_500);
    signal.throwIfAborted();
  });
  await expect(running).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
});

test('an error of the work wins over the loss', async () => {
  useFakeClock();
  const lock = locksOn(scriptedBackend(), { ttlMs: 1_000, renewal: 'manual' }).lock('a');
  const running = lock.run(async () => {
    await pass(1_500);
    throw new Error('the work failed');
  });
  await expect(running).rejects.toThrow('the work failed');
});

test('a loss that only the release finds rejects with the value of the work', async () => {
  const backend = scriptedBackend({ release: () => Promise.resolve('not-held') });
  await expect(
    locksOn(backend)
      .lock('a')
      .run(() => 7),
  ).rejects.toMatchObject({
    code: 'LOCK_LOST',
    reason: 'force-released',
    result: 7,
  });
});

test('a release without an answer leaves the outcome of the work as it is, and is reported', async () => {
  const failed = listenTo('locks:release-failed');
  const silent = locksOn(scriptedBackend({ release: noAnswer }), { ttlMs: 60 });
  expect(await silent.lock('a').run(() => 'done')).toBe('done');
  expect(failed).toMatchObject([{ resource: 'a', backend: 'scripted', error: { code: 'LOCK_BACKEND' } }]);
  await expect(silent.lock('a').run(() => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
  expect(failed).toHaveLength(2);
});

test('work may release early, and run does not complain', async () => {
  const backend = scriptedBackend();
  const value = await locksOn(backend)
    .lock('a')
    .run(async (lease) => {
      await lease.release();
      return 'done';
    });
  expect(value).toBe('done');
  expect(backend.of('release')).toHaveLength(1);
});

test('without reentrant no asynchronous context is touched', async () => {
  const { AsyncLocalStorage } = await import('node:async_hooks');
  const used: unknown[] = [];
  const { run } = AsyncLocalStorage.prototype;
  const { storage } = asyncContext;
  // As in a process where nothing was ever reentrant.
  asyncContext.storage = undefined;
  AsyncLocalStorage.prototype.run = function (this: unknown, ...args: unknown[]): never {
    used.push(args);
    return Reflect.apply(run, this, args) as never;
  } as typeof run;
  try {
    const locks = locksOn(scriptedBackend());
    await locks.lock('a').run(() => locks.lock('b').run(() => locks.detached(() => 'done')));
    expect(used).toEqual([]);
    await locks.lock('c', { reentrant: true }).run(() => 'done');
    expect(used).toHaveLength(1);
  } finally {
    AsyncLocalStorage.prototype.run = run;
    asyncContext.storage = storage;
  }
});
