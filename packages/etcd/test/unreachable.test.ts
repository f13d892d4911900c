import { createLocks } from '@locks/core';
import { freePort, startEtcd } from '@locks/test-servers';
import { expect, test } from 'vitest';
import { etcdBackend } from '../src/index.ts';

const cannotConnect = (port: number) => {
  const refused = expect.stringContaining(`ECONNREFUSED 127.0.0.1:${port}`);
  return { code: 'LOCK_BACKEND', message: refused, cause: expect.objectContaining({ message: refused }) };
};

test('a server that is away is named with the error of the connection', async () => {
  const port = await freePort();
  const locks = createLocks(etcdBackend({ hosts: `http://127.0.0.1:${port}` }), { answerMs: 300 });
  const refused = cannotConnect(port);
  await expect(locks.lock('a').acquire({ waitMs: 300 })).rejects.toMatchObject(refused);
  await expect(locks.lock('a').tryAcquire()).rejects.toMatchObject(refused);
  await expect(locks.ping()).rejects.toMatchObject(refused);
  await locks.close();
});

test('a wait ends as a failure of the store where that went away, though the lock was contended before', async () => {
  const server = await startEtcd();
  const locks = createLocks(etcdBackend({ hosts: server.url }));
  await locks.lock('a').acquire();
  const waiting = expect(locks.lock('a').acquire({ waitMs: 3_000 })).rejects.toMatchObject(
    cannotConnect(server.port),
  );
  await locks.lock('b').acquire();
  await server.stop();
  await waiting;
  await locks.close();
});
