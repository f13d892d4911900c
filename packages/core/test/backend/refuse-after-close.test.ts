import { expect, test } from 'vitest';
import { refuseAfterClose } from '../../src/backend/refuse-after-close.ts';
import { capabilities, scriptedBackend } from '../scripted-backend.ts';
import { locksOn } from '../fixture.ts';

const closed = { code: 'LOCK_CLOSED', backend: 'scripted' };

test('a call on a closed backend says which one is closed, and does not reach it', async () => {
  const backend = scriptedBackend();
  await refuseAfterClose(backend).close();
  const acquiring = locksOn(backend).lock('a').tryAcquire();
  await expect(acquiring).rejects.toMatchObject({
    ...closed,
    message: 'The backend scripted is closed: make a new one.',
  });
  expect(backend.sent).toEqual([]);
});

test('until its close a backend has its own methods', async () => {
  const backend = scriptedBackend();
  const { attempt } = backend;
  refuseAfterClose(backend);
  expect(backend.attempt).toBe(attempt);
  expect(backend.ping).toBeUndefined();
  await backend.close();
  expect(backend.ping).toBeUndefined();
});

test('the list of a closed backend is refused when it is read', async () => {
  const backend = scriptedBackend({
    capabilities: { ...capabilities, features: ['list'] },
    async *list() {},
  });
  await refuseAfterClose(backend).close();
  const read = async (): Promise<void> => {
    for await (const _ of locksOn(backend).list());
  };
  await expect(read()).rejects.toMatchObject(closed);
});

test('a backend is closed once', async () => {
  let closes = 0;
  const backend = refuseAfterClose(
    scriptedBackend({
      async close() {
        closes += 1;
      },
    }),
  );
  await Promise.all([backend.close(), backend.close()]);
  expect(closes).toBe(1);
});
