import { createLocks } from '@locks/core';
import { freePort, Participant } from '@locks/test-servers';
import { cannotConnect, testUnreachable } from '@locks/test-servers/redis-clients/client-tests';
import { Cluster, Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { redisBackend } from '../src/index.ts';
import { participant } from './setup.ts';

testUnreachable({
  open: (server) => Promise.resolve(participant(server)),
  openCluster: (roots) => {
    const client = new Cluster([...roots]);
    client.on('error', () => undefined);
    return Promise.resolve(new Participant(redisBackend(client), () => client.disconnect()));
  },
  openBrittle: (server) =>
    Promise.resolve(participant(server, {}, { retryStrategy: (times) => (times > 1 ? null : 10) })),
  clusterCall: 'new Cluster(',
});

describe('a server that was never there', () => {
  it.each([
    ['the errors of its client are listened to', true],
    ['its user does not listen to errors', false],
  ])('is named with the error of the connection where %s', async (_, listens) => {
    const port = await freePort();
    const client = new Redis({ port, host: '127.0.0.1', maxRetriesPerRequest: null });
    if (listens) client.on('error', () => undefined);
    const locks = createLocks(redisBackend(client), { answerMs: 300 });
    const refused = cannotConnect({ port });
    await expect(locks.lock('a').acquire({ waitMs: 300 })).rejects.toMatchObject(refused);
    await expect(locks.lock('a').tryAcquire()).rejects.toMatchObject(refused);
    await expect(locks.ping()).rejects.toMatchObject(refused);
    await locks.close();
    client.disconnect();
  });

  it.each([
    ['reports only that it gave up on a command', { maxRetriesPerRequest: 0 }],
    ['does not connect again', { retryStrategy: () => null }],
  ])('is named where the client %s', async (_, options) => {
    const server = { port: await freePort() };
    await using client = participant(server, {}, options);
    const locks = createLocks(client.backend);
    await expect(locks.lock('a').acquire({ waitMs: 300 })).rejects.toMatchObject(cannotConnect(server));
    await locks.close();
  });
});
