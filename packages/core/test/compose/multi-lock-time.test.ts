import { expect, test, vi } from 'vitest';
import { locksOn, pass, rejectionOf, useFakeClock } from '../fixture.ts';
import { capabilities, granted, scriptedBackend } from '../scripted-backend.ts';

/** The time of a set passes at once, while one of its calls is under way. */
const timePasses = (): void => void vi.setSystemTime(Date.now() + 1_000);

test('a set that used up its time waits no longer for its other members, whatever their ttl', async () => {
  useFakeClock();
  const backend = scriptedBackend({
    attempt(request, _, call) {
      if (request.resource === 'b') return new Promise(() => {});
      timePasses();
      return Promise.resolve(granted(request, call));
    },
  });
  const locks = locksOn(backend, { ttlMs: 60_000 });
  const acquiring = rejectionOf(locks.all([locks.lock('a'), locks.lock('b')]).acquire({ waitMs: 100 }));
  await pass(200);
  expect(await Promise.race([acquiring, Promise.resolve('it still waits')])).toBe('LOCK_BACKEND');
});

test('one step that fails when the time is over is followed by no attempt that takes longer', async () => {
  useFakeClock();
  const backend = scriptedBackend({
    capabilities: { ...capabilities, features: ['many'] },
    attemptMany() {
      timePasses();
      return Promise.reject(new Error('no reply'));
    },
    attempt: () => new Promise(() => {}),
  });
  const locks = locksOn(backend, { ttlMs: 60_000 });
  const acquiring = rejectionOf(locks.all([locks.lock('a'), locks.lock('b')]).acquire({ waitMs: 100 }));
  await pass(200);
  expect(await Promise.race([acquiring, Promise.resolve('it still waits')])).toBe('LOCK_BACKEND');
});
