import { expect, test } from 'vitest';
import { refuseAfterClose } from '../../src/backend/refuse-after-close.ts';
import type { LockBackend } from '../../src/backend/types.ts';
import { capabilities, scriptedBackend } from '../scripted-backend.ts';
import { locksOn } from '../fixture.ts';

const closed = { code: 'LOCK_CLOSED', backend: 'scripted' };

test('a call on a closed backend says which one is closed, and does not reach it', async () => {
  const backend = scriptedBackend();
  await refuseAfterClose(backend).close();
  const acquiring = locksOn(backend).lock('a').acquire();
  await expect(acquiring).rejects.toMatchObject({
    ...closed,
    message: 'The backend scripted is closed: make a new one.',
  });
  expect(backend.sent).toEqual([]);
});

test('a method of a backend that was taken from it before its close is refused after it', async () => {
  let pings = 0;
  const backend = refuseAfterClose(
    scriptedBackend({
      async ping() {
        pings += 1;
      },
    }),
  );
  const ping = backend.ping?.bind(backend) as NonNullable<LockBackend['ping']>;
  const call = { now: () => 0, deadline: 1 };
  await ping(call);
  await backend.close();
  await expect(ping(call)).rejects.toMatchObject(closed);
  expect(pings).toBe(1);
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
