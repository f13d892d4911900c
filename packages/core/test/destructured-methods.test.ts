import { expect, test } from 'vitest';
import { createLocks } from '../src/create-locks.ts';
import { capabilities, scriptedBackend } from './scripted-backend.ts';

test('methods that are taken from a manager work without it', async () => {
  const backend = scriptedBackend({
    capabilities: {
      ...capabilities,
      modes: ['exclusive', 'shared', 'permit'],
      features: ['list', 'force-release'],
    },
    async *list() {
      yield { name: 'a', holders: [], waiters: [] };
    },
    forceRelease: () => Promise.resolve([]),
    downgrade: () => Promise.resolve({ status: 'held' }),
    resize: () => Promise.resolve({ status: 'set' }),
  });
  const {
    lock,
    readWriteLock,
    semaphore,
    all,
    inspect,
    isLocked,
    ping,
    list,
    forceRelease,
    detached,
    close,
  } = createLocks(backend);
  for (const one of [
    lock('a'),
    readWriteLock('a').read,
    readWriteLock('a').write,
    semaphore('b', 2),
    all([lock('c')]),
  ]) {
    expect(await one.run(() => 'ran')).toBe('ran');
  }
  expect(await inspect('a')).toMatchObject({ name: 'a' });
  expect(await isLocked('a')).toBe(false);
  expect((await ping()).tookMs).toBeGreaterThanOrEqual(0);
  for await (const state of list()) expect(state.name).toBe('a');
  expect(await forceRelease('a')).toEqual([]);
  expect(detached(() => 'outside')).toBe('outside');
  await close();
  expect(() => lock('a')).toThrow(expect.objectContaining({ code: 'LOCK_CLOSED' }));
});
