import { expect, test } from 'vitest';
import { createLocks } from '../src/index.ts';
import type { Call } from '../src/backend/types.ts';
import { scriptedBackend } from './scripted-backend.ts';

test('prepare() calls the backend with no limit of time, and keeps the process alive meanwhile', async () => {
  let finish = (): void => undefined;
  let deadline: number | undefined;
  const prepare = (call: Call): Promise<void> => {
    deadline = call.deadline;
    return new Promise((resolve) => (finish = resolve));
  };
  const { prepare: prepared } = createLocks(scriptedBackend({ prepare }));
  const timersOf = (): number => process.getActiveResourcesInfo().filter((one) => one === 'Timeout').length;
  const before = timersOf();
  const done = prepared();
  expect(deadline).toBe(Number.POSITIVE_INFINITY);
  expect(timersOf()).toBe(before + 1);
  finish();
  await done;
  expect(timersOf()).toBe(before);
});

test('prepare() resolves where the backend has nothing to make', async () => {
  expect(await createLocks(scriptedBackend()).prepare()).toBeUndefined();
});

test('the failure of a preparation is a LOCK_BACKEND that says why', async () => {
  const denied = new Error('permission denied for database shop');
  const locks = createLocks(scriptedBackend({ prepare: () => Promise.reject(denied) }));
  await expect(locks.prepare()).rejects.toMatchObject({
    code: 'LOCK_BACKEND',
    message: expect.stringMatching(
      /^Could not prepare the store on .*: permission denied for database shop$/,
    ),
    cause: denied,
  });
});

test('close() ends a preparation that does not end, and tells the backend; afterwards there is none', async () => {
  let signal: AbortSignal | undefined;
  const prepare = (call: Call): Promise<void> => {
    signal = call.signal;
    return new Promise(() => undefined);
  };
  const locks = createLocks(scriptedBackend({ prepare }));
  const rejected = expect(locks.prepare()).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
  expect(signal?.aborted).toBe(false);
  await locks.close();
  await rejected;
  expect(signal?.aborted).toBe(true);
  await expect(locks.prepare()).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
});
