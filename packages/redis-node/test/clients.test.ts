import { call, handOffOverCutChannel, Participant, request, startProxy } from '@locks/test-servers';
import {
  expectOneListener,
  expectTwoRequests,
  loseAnswerOfAttempt,
  meetBehindKeyPrefix,
  shareOneQueue,
  testRefusedClients,
  useEveryReply,
} from '@locks/test-servers/redis-clients/client-tests';
import { fresh, redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { createClient } from 'redis';
import { describe, expect, it } from 'vitest';
import { redisBackend } from '../src/index.ts';
import { ioredisParticipant, nodeRedisParticipant } from './setup.ts';

useRedis();

const invalid = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });

describe('what is not a usable client', () => {
  testRefusedClients(redisBackend, [
    ['undefined', undefined, /undefined/],
    ['null', null, /null/],
    ['an address', 'redis://localhost', /redis:\/\/localhost/],
    ['a promise of one', Promise.resolve({}), /await/],
    ['a plain object', { host: 'localhost' }, /createClient/],
    [
      'a client of ioredis',
      { status: 'ready', defineCommand() {}, sendCommand() {} },
      /@locks\/redis-ioredis/,
    ],
  ]);

  it('is refused at the call while it is not connected', async () => {
    const backend = redisBackend(createClient());
    for (const attempt of [
      backend.attempt(request('x'), true, call),
      backend.abandon(request('x'), call),
      Promise.resolve().then(() => backend.inspect('x', call)),
    ]) {
      await expect(attempt).rejects.toEqual(invalid);
      await expect(attempt).rejects.toThrow(/await client.connect\(\)/);
    }
    await backend.close();
  });

  it('is refused when it serves subscriptions', async () => {
    const client = await createClient({ url: redis.url }).connect();
    await client.subscribe('x', () => undefined);
    expect(() => redisBackend(client)).toThrow(/subscriptions/);
    client.destroy();
  });
});

describe('options of the client', () => {
  it.each([
    ['RESP2', { RESP: 2 as const }],
    ['mapped types', { commandOptions: { typeMapping: { 36: Buffer, 58: String } } }],
    ['a database', { database: 2 }],
    ['no offline queue', { disableOfflineQueue: true }],
  ])('works with %s', async (title, options) => {
    const client = await createClient({ url: redis.url, ...options } as object).connect();
    await using a = new Participant(redisBackend(client), () => client.destroy());
    await useEveryReply(a, title);
  });

  it('has one listener of ours for each event, for however many backends, and none after their end', async () => {
    const client = createClient({ url: redis.url });
    await client.connect();
    await expectOneListener(client, 12, () => redisBackend(client));
    client.destroy();
  });

  it('puts keys and channel behind its key prefix', async () => {
    const client = await createClient({ url: redis.url, keyPrefix: 'app:' }).connect();
    await using a = new Participant(redisBackend(client), () => client.destroy());
    await using plain = await ioredisParticipant(redis, { prefix: 'app:lock:' });
    await meetBehindKeyPrefix(redis, a, plain);
  });
});

describe('requests', () => {
  it('are two for a lock nobody else wants', () => expectTwoRequests(redis, nodeRedisParticipant));

  it('that got no answer end with the connection, and the same attempt then has the grant', async () => {
    expect(await loseAnswerOfAttempt(redis, nodeRedisParticipant)).toBeInstanceOf(Error);
  });
});

describe('both clients', () => {
  it('share one queue, in order, and exclude each other', async () => {
    await using a = await nodeRedisParticipant(redis);
    await using b = await ioredisParticipant(redis);
    await shareOneQueue(a, b);
  });

  it('see each other in inspect', async () => {
    await using a = await nodeRedisParticipant(redis);
    await using b = await ioredisParticipant(redis);
    const name = fresh();
    await a.take(name);
    const wanted = request(name);
    await b.queue(wanted);
    expect(await a.backend.inspect(name, call)).toEqual({
      ...(await b.backend.inspect(name, call)),
      holders: [expect.objectContaining({ label: 'test' })],
      waiters: [expect.objectContaining({ acquisitionId: wanted.acquisitionId, label: 'test' })],
    });
  });
});

describe('a channel', () => {
  it('that is cut listens again, and no hand-off is lost', async () => {
    await using proxy = await startProxy(redis);
    await using a = await ioredisParticipant(redis);
    await using b = await nodeRedisParticipant(proxy);
    await handOffOverCutChannel(a, b, proxy, fresh());
  });
});
