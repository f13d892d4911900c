import {
  call,
  handOffOverCutChannel,
  Participant,
  request,
  startProxy,
  startRedis,
  waitUntil,
} from '@locks/test-servers';
import {
  expectTwoRequests,
  loseAnswerOfAttempt,
  shareOneQueue,
  testRefusedClients,
  useEveryReply,
} from '@locks/test-servers/redis-clients/client-tests';
import { createLocks } from '@locks/core';
import { fresh, redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { Decoder, GlideClient, ProtocolVersion } from '@valkey/valkey-glide';
import { describe, expect, it } from 'vitest';
import { redisBackend } from '../src/index.ts';
import { glideClient, glideParticipant, ioredisParticipant } from './setup.ts';

useRedis();

const invalid = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });

describe('what is not a usable client', () => {
  testRefusedClients(redisBackend, [
    ['undefined', undefined, /undefined/],
    ['null', null, /null/],
    ['an address', 'redis://localhost', /redis:\/\/localhost/],
    ['a promise of one', Promise.resolve({}), /await GlideClient\.createClient/],
    ['the class', GlideClient, /class/],
    ['a configuration', { addresses: [{ host: 'localhost' }] }, /configuration/],
    ['a plain object', { host: 'localhost' }, /GlideClusterClient\.createClient/],
    [
      'a client of ioredis',
      { status: 'ready', defineCommand() {}, sendCommand() {} },
      /@locks\/redis-ioredis/,
    ],
    ['a client of node-redis', { isOpen: true, sendCommand() {}, duplicate() {} }, /@locks\/redis-node/],
    [
      'a client of an older GLIDE',
      { customCommand() {}, close() {}, isClosed: false, config: { addresses: [] } },
      /2\.5/,
    ],
  ]);

  it('is refused when it is read-only or closed, and at the call when it is closed later', async () => {
    const readOnly = await glideClient(redis, { readOnly: true });
    expect(() => redisBackend(readOnly)).toThrow(/readOnly/);
    readOnly.close();
    expect(() => redisBackend(readOnly)).toThrow(invalid);
    const client = await glideClient(redis);
    const backend = redisBackend(client);
    client.close();
    expect(() => redisBackend(client)).toThrow(/closed/);
    for (const attempt of [
      backend.attempt(request('x'), true, call),
      backend.abandon(request('x'), call),
      Promise.resolve().then(() => backend.inspect('x', call)),
    ]) {
      await expect(attempt).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
    }
    await backend.close();
  });

  it('is refused with misspelt options', async () => {
    const client = await glideClient(redis);
    expect(() => redisBackend(client, { prefx: 'lock:' } as object)).toThrow(invalid);
    client.close();
  });
});

describe('options of the client', () => {
  it.each([
    ['RESP2', { protocol: ProtocolVersion.RESP2 }],
    ['replies as bytes', { defaultDecoder: Decoder.Bytes }],
    ['a database', { databaseId: 2 }],
    ['reads from replicas', { readFrom: 'preferReplica' as const }],
    ['a lazy connection', { lazyConnect: true }],
    ['few requests at a time', { inflightRequestsLimit: 2 }],
  ])('works with %s', async (title, configuration) => {
    await using a = await glideParticipant(redis, {}, configuration);
    await useEveryReply(a, title);
  });

  it('keeps more attempts than the client takes at once until others are answered', async () => {
    await using a = await glideParticipant(redis, {}, { inflightRequestsLimit: 20 });
    const grants = await Promise.all(Array.from({ length: 200 }, () => a.take(fresh())));
    expect(new Set(grants.map(({ fencingToken }) => fencingToken)).size).toBe(200);
  });
});

describe('requests', () => {
  it('are two for a lock nobody else wants', () => expectTwoRequests(redis, glideParticipant));

  it('that got no answer are not sent again by the client, and the same attempt then has the grant', async () => {
    expect(await loseAnswerOfAttempt(redis, glideParticipant)).toMatchObject({ name: 'ConnectionError' });
  });

  it('that the server refuses are reported with its code, and not sent again', async () => {
    const rights = ['on', '>secret', '~*', '+@read', '+@connection', '+info'];
    await redis.command('ACL', 'SETUSER', 'reader', ...rights);
    const credentials = { username: 'reader', password: 'secret' };
    await using reader = await glideParticipant(redis, {}, { credentials });
    const denied: unknown = await reader.backend
      .attempt(request('x'), true, call)
      .catch((reason: unknown) => reason);
    expect(String(denied)).toMatch(/NOPERM/);
    expect(reader.backend.isRetryable(denied)).toBe(false);
  });
});

describe('a client of GLIDE and one of ioredis', () => {
  it('share one queue, in order, and exclude each other', async () => {
    await using a = await glideParticipant(redis);
    await using b = await ioredisParticipant(redis);
    await shareOneQueue(a, b);
  });
});

describe('the client that listens', () => {
  it('listens again when it is cut, and no hand-off is lost', async () => {
    await using proxy = await startProxy(redis);
    await using a = await ioredisParticipant(redis);
    await using b = await glideParticipant(proxy);
    await handOffOverCutChannel(a, b, proxy, fresh());
  });

  it('ends with the client of the application, which is never closed', async () => {
    const client = await glideClient(redis);
    const a = new Participant(redisBackend(client), () => undefined);
    const name = fresh();
    const grant = await a.take(name);
    await a.queue(request(name));
    const listening = async () => (await redis.command('PUBSUB', 'CHANNELS')) as unknown[];
    await waitUntil(async () => (await listening()).length === 1, { what: 'the channel' });
    await a.backend.release(grant, call);
    await a.backend.close();
    await waitUntil(async () => (await listening()).length === 0, { what: 'the end of the channel' });
    expect(await client.ping()).toBe('PONG');

    const other = new Participant(redisBackend(client), () => undefined);
    await other.queue(request((await other.take(fresh())).request.resource));
    await waitUntil(async () => (await listening()).length === 1, { what: 'the channel' });
    client.close();
    await waitUntil(async () => (await listening()).length === 0, { what: 'the end of the channel' });
    await other.backend.close();
  });

  it.each([
    ['to the channel', ['+@all', 'resetchannels']],
    ['to subscribe', ['+@all', '-subscribe', 'allchannels']],
  ])(
    'is given up without a right %s: waiting works, and a warning says what to grant',
    async (title, rights) => {
      const username = title.replaceAll(' ', '-');
      await redis.command('ACL', 'SETUSER', username, 'on', '>secret', '~*', ...rights);
      const credentials = { username, password: 'secret' };
      await using a = await glideParticipant(redis, { maxPollMs: 100 }, { credentials });
      const warned = new Promise<Error>((resolve) => process.once('warning', resolve));
      const name = fresh();
      const grant = await a.take(name);
      const { turn } = await a.queue(request(name));
      await a.backend.release(grant, call);
      expect(await turn).toBeDefined();
      // The subscription is tried again while somebody waits.
      const held = await a.take(fresh());
      const waiter = request(held.request.resource);
      await a.queue(waiter);
      expect(String(await warned)).toMatch(/NOPERM.*Grant \+subscribe &lock:ch:\*/);
    },
  );
});

describe('a server that is away', () => {
  it('fails calls as a failure of the store, also a wait that was contended before', async () => {
    const own = await startRedis();
    await using a = await glideParticipant(own, {}, { requestTimeout: 250 });
    const locks = createLocks(a.backend);
    await locks.lock('a').acquire();
    const failure = { code: 'LOCK_BACKEND' };
    const waiting = expect(locks.lock('a').acquire({ waitMs: 3_000 })).rejects.toMatchObject(failure);
    await waitUntil(async () => (await locks.inspect('a')).waiters.length > 0, { what: 'a waiter' });
    await own.stop();
    await waiting;
    await expect(locks.lock('b').acquire({ waitMs: 600 })).rejects.toMatchObject(failure);
    await locks.close();
  });
});
