import { once } from 'node:events';
import { createLocks } from '@locks/core';
import { call, request } from '@locks/test-servers';
import {
  expectOneListener,
  meetBehindKeyPrefix,
  testRefusedClients,
  useEveryReply,
} from '@locks/test-servers/redis-clients/client-tests';
import { redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { Cluster, Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { redisBackend } from '../src/index.ts';
import { participant } from './setup.ts';

useRedis();

const invalid = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });
const lazy = (options = {}) => new Redis({ lazyConnect: true, ...options });

describe('what is not a usable client', () => {
  testRefusedClients(redisBackend, [
    ['undefined', undefined, /undefined/],
    ['null', null, /null/],
    ['an address', 'redis://localhost', /redis:\/\/localhost/],
    ['a URL', new URL('redis://localhost'), /new Redis/],
    ['a plain object', { host: 'localhost' }, /new Redis/],
    ['a part of a client', { sendCommand() {} }, /new Redis/],
    ['a client of node-redis', { isOpen: true, sendCommand() {}, duplicate() {} }, /@locks\/redis-node/],
  ]);

  it('is refused when it has ended, reads only, or asks for a replica', () => {
    const ended = lazy();
    ended.disconnect();
    const clients = [lazy({ readOnly: true }), lazy({ sentinels: [{ port: 1 }], name: 'm', role: 'slave' })];
    for (const client of clients) expect(() => redisBackend(client)).toThrow(invalid);
    const nodes = [{ port: 1 }];
    for (const scaleReads of ['slave', 'all'] as const) {
      const cluster = new Cluster(nodes, { lazyConnect: true, scaleReads });
      expect(() => redisBackend(cluster)).toThrow(/scaleReads/);
      cluster.disconnect();
    }
    for (const client of clients) client.disconnect();
  });

  it('is refused once it has ended, in use and anew', async () => {
    const client = new Redis(redis.port);
    const backend = redisBackend(client);
    const ended = once(client, 'end');
    await client.quit();
    await ended;
    await expect(backend.attempt(request('x'), true, call)).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
    expect(() => redisBackend(client)).toThrow(invalid);
  });

  it('is refused in subscriber mode (RESP2)', async () => {
    const client = new Redis({ port: redis.port, protocol: 2 });
    await client.subscribe('x');
    expect(() => redisBackend(client)).toThrow(/subscriber mode/);
    client.disconnect();
  });
});

describe('bad options', () => {
  it('are refused at once: replicas of a cluster', () => {
    const cluster = new Cluster([{ port: 1 }], { lazyConnect: true });
    expect(() => redisBackend(cluster, { minReplicas: 1 })).toThrow(/cluster/);
    cluster.disconnect();
  });
});

describe('options of the client', () => {
  it.each([
    ['RESP2', { protocol: 2 as const }],
    ['string numbers', { stringNumbers: true }],
    ['auto-pipelining', { enableAutoPipelining: true }],
    ['a late connect', { lazyConnect: true }],
    ['a database', { db: 3 }],
    ['no offline queue of the subscriber', { autoResubscribe: false, maxRetriesPerRequest: 1 }],
  ])('works with %s', async (what, options) => {
    await using a = participant(redis, {}, options);
    await useEveryReply(a, `with-${what}`);
  });

  it('works where the client sends every refused command again, and the server does not know the scripts', async () => {
    await redis.command('SCRIPT', 'FLUSH');
    await using a = participant(redis, {}, { reconnectOnError: () => 2 });
    await useEveryReply(a, 'repeated');
    await redis.command('SCRIPT', 'FLUSH');
    await useEveryReply(a, 'repeated after a flush');
  });

  it('has one listener of ours for each event, for however many backends, and none after their end', async () => {
    const client = new Redis(redis.port);
    await once(client, 'ready');
    await expectOneListener(client, 12, () => redisBackend(client));
    client.disconnect();
  });

  it('names no value of the application in a timeout, and gives no advice on a ttl that its key has not', async () => {
    await redis.command('SET', 'config', '{"password":"hunter2"}');
    const client = new Redis(redis.port);
    const locks = createLocks(redisBackend(client, { prefix: '' }));
    const waiting = locks.lock('config').acquire({ waitMs: 300, ttlMs: 60_000 });
    const error = (await waiting.catch((thrown: unknown) => thrown)) as Error;
    expect(error).toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(error.message).toContain('held by another program.');
    expect(error.message).not.toMatch(/hunter2|ttlMs/);
    await locks.close();
    client.disconnect();
  });

  it('puts keys and channel behind its key prefix', async () => {
    await using a = participant(redis, {}, { keyPrefix: 'app:' });
    await using plain = participant(redis, { prefix: 'app:lock:' });
    await meetBehindKeyPrefix(redis, a, plain);
    const client = lazy({ keyPrefix: '{app}:' });
    expect(() => redisBackend(client)).toThrow(invalid);
    client.disconnect();
  });

  it('sends nothing before the first lock', () => {
    const client = lazy();
    redisBackend(client);
    expect(client.status).toBe('wait');
    client.disconnect();
  });
});
