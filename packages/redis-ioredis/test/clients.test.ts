import { once } from 'node:events';
import { call, type RedisServer, request, startRedis } from '@locks/test-servers';
import { Cluster, Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type IoredisClient, redisBackend } from '../src/index.ts';
import { participant } from './setup.ts';

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const invalid = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });
const lazy = (options = {}) => new Redis({ lazyConnect: true, ...options });

describe('what is not a usable client', () => {
  it.each([
    ['undefined', undefined, /undefined/],
    ['null', null, /null/],
    ['an address', 'redis://localhost', /redis:\/\/localhost/],
    ['a URL', new URL('redis://localhost'), /new Redis/],
    ['a plain object', { host: 'localhost' }, /new Redis/],
    ['a part of a client', { sendCommand() {} }, /new Redis/],
    ['a client of node-redis', { isOpen: true, sendCommand() {}, duplicate() {} }, /@locks\/redis-node/],
  ])('is refused at once: %s', (_, client, message) => {
    expect(() => redisBackend(client as unknown as IoredisClient)).toThrow(invalid);
    expect(() => redisBackend(client as unknown as IoredisClient)).toThrow(message);
  });

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
    await expect(backend.attempt(request('x'), true, call)).rejects.toEqual(invalid);
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
  ])('works with %s', async (_, options) => {
    await using a = participant(redis, {}, options);
    const name = `with-${_}`;
    const grant = await a.take(name);
    expect(typeof grant.fencingToken).toBe('bigint');
    const { turn } = await a.queue(request(name));
    expect(await a.backend.renew([{ grant, ttlMs: 20_000 }], call)).toEqual([{ status: 'held' }]);
    await a.backend.release(grant, call);
    const next = await turn;
    expect(next?.fencingToken).toBeGreaterThan(grant.fencingToken as bigint);
    const found = [];
    for await (const state of a.backend.list?.(name, call) ?? []) found.push(state.resource);
    expect(found).toEqual([name]);
    if (next) expect(await a.backend.release(next, call)).toBe('released');
  });

  it('puts keys and channel behind its key prefix', async () => {
    await using a = participant(redis, {}, { keyPrefix: 'app:' });
    await using plain = participant(redis, { prefix: 'app:lock:' });
    const grant = await a.take('prefixed');
    expect(await redis.command('EXISTS', 'app:lock:prefixed')).toBe(1);
    const { turn } = await plain.queue(request('prefixed'));
    await a.backend.release(grant, call);
    expect(await turn).toBeDefined();
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
