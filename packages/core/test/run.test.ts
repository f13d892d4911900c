import { expect, test } from 'vitest';
import type { Lock } from '../src/lock.ts';
import { listenTo, locksOn, pass, useFakeClock } from './fixture.ts';
import { capabilities, noAnswer, scriptedBackend } from './scripted-backend.ts';

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
  expect(failed).toMatchObject([{ name: 'a', backend: 'scripted', error: { code: 'LOCK_BACKEND' } }]);
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

test.each(['a lock', 'readers', 'a writer', 'permits', 'several locks', 'several, one of them reentrant'])(
  'the signal of the caller aborts the one that the work sees, with its reason: %s',
  async (which) => {
    const backend = scriptedBackend({
      capabilities: { ...capabilities, modes: ['exclusive', 'shared', 'permit'] },
      downgrade: () => Promise.resolve({ status: 'held' }),
      resize: () => Promise.resolve({ status: 'set' }),
    });
    const locks = locksOn(backend);
    const [one, two] = [locks.lock('a', { reentrant: which.endsWith('reentrant') }), locks.lock('b')];
    const single: Record<string, Pick<Lock, 'run'>> = {
      'a lock': one,
      readers: locks.readWriteLock('a').read,
      'a writer': locks.readWriteLock('a').write,
      permits: locks.semaphore('a', 2),
    };
    const caller = new AbortController();
    const reason = new Error('the request was cancelled');
    const lock = single[which] ?? locks.all([one, two]);
    const ran = lock.run(
      async ({ signal }) => {
        expect(signal.aborted).toBe(false);
        caller.abort(reason);
        expect(signal.reason).toBe(reason);
        return backend.of('release').length;
      },
      { signal: caller.signal },
    );
    // The work decides what it makes of that; until its end nothing is released.
    expect(await ran).toBe(0);
    expect(backend.of('release')).toHaveLength(which in single ? 1 : 2);
  },
);

test('a loss during the work aborts with its own reason, whatever the signal of the caller', async () => {
  const backend = scriptedBackend({
    renew: () => Promise.resolve([{ status: 'lost', reason: 'taken-over' }]),
  });
  const caller = new AbortController();
  const ran = locksOn(backend)
    .lock('a')
    .run(
      async (lease) => {
        await lease.renew().catch(() => undefined);
        expect(lease.signal.reason).toMatchObject({ code: 'LOCK_LOST' });
        caller.abort(new Error('later'));
        expect(lease.signal.reason).toMatchObject({ code: 'LOCK_LOST' });
      },
      { signal: caller.signal },
    );
  await expect(ran).rejects.toMatchObject({ code: 'LOCK_LOST' });
});
