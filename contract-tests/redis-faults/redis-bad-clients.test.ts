import { once } from 'node:events';
import { createLocks } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import {
  type IoredisClient,
  type RedisBackendOptions,
  redisBackend as ioredisBackend,
} from '@locks/redis-ioredis';
import { type NodeRedisClient, redisBackend as nodeRedisBackend } from '@locks/redis-node';
import { type RedisServer, startRedis } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { failure } from '../src/fault-lab/observe.ts';
import Lab from './lab.ts';

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});

afterAll(async () => redis.stop());

const ioredisOn = (client: unknown): LockBackend => ioredisBackend(client as IoredisClient);
const nodeRedisOn = (client: unknown): LockBackend => nodeRedisBackend(client as NodeRedisClient);
async function end(client: Redis): Promise<void> {
  const ended = once(client, 'end');
  await client.quit();
  await ended;
}

const invalid = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });

/** At once: in the call itself, without a wait, and with nothing sent. */
async function refusesToAcquire(backend: LockBackend, code = 'LOCK_CLOSED'): Promise<void> {
  const locks = createLocks(backend);
  const startedAt = performance.now();
  expect(await failure(locks.lock('a').acquire({ waitMs: 10_000 }))).toMatchObject({ code });
  expect(await failure(locks.lock('a').tryAcquire())).toMatchObject({ code });
  expect(performance.now() - startedAt).toBeLessThan(1_000);
  await locks.close();
}

afterEach(async () => {
  expect(await redis.command('DBSIZE')).toBe(0);
  expect(await redis.command('PUBSUB', 'CHANNELS')).toEqual([]);
});

describe.each([
  ['redis-ioredis', ioredisOn],
  ['redis-node', nodeRedisOn],
])('%s refuses what is no client of its own', (_, backendOn) => {
  it.each([
    ['nothing', undefined],
    ['null', null],
    ['an address', 'redis://localhost:6379'],
    ['an URL object', new URL('redis://localhost:6379')],
    ['a number', 6379],
    ['a plain object', {}],
    ['options', { host: 'localhost', port: 6379 }],
    ['something with sendCommand alone', { sendCommand: () => Promise.resolve() }],
    ['a class', Redis],
    ['a promise', Promise.resolve()],
  ])('%s', (_name, client) => {
    expect(() => backendOn(client)).toThrow(invalid);
  });

  it.each([
    ['an unknown option', { maxPollMS: 100 }],
    ['a longest pause of 0', { maxPollMs: 0 }],
    ['a longest pause that is no number', { maxPollMs: Number.NaN }],
    ['a prefix with a brace', { prefix: 'app{1}:' }],
    ['a fraction of a replica', { minReplicas: 0.5 }],
  ])('%s', async (_name, bad: object) => {
    const options = bad as RedisBackendOptions;
    const [one, other] = [new Redis(redis.url, { lazyConnect: true }), createClient({ url: redis.url })];
    expect(() =>
      backendOn === ioredisOn ? ioredisBackend(one, options) : nodeRedisBackend(other, options),
    ).toThrow(invalid);
    one.disconnect();
  });
});

describe('a client of the other library', () => {
  it('is refused by redis-ioredis, which names the adapter to use', () => {
    expect(() => ioredisOn(createClient({ url: redis.url }))).toThrow(/@locks\/redis-node/);
  });

  it('is refused by redis-node, which names the adapter to use', () => {
    const client = new Redis(redis.url, { lazyConnect: true });
    expect(() => nodeRedisOn(client)).toThrow(/@locks\/redis-ioredis/);
    client.disconnect();
  });
});

describe('a client that cannot send', () => {
  it('of ioredis, ended before: refused by the backend', async () => {
    const client = new Redis(redis.url);
    await end(client);
    expect(() => ioredisOn(client)).toThrow(invalid);
  });

  it('of ioredis, ended later: refused by the next acquire', async () => {
    const client = new Redis(redis.url);
    const backend = ioredisOn(client);
    await end(client);
    await refusesToAcquire(backend);
  });

  it('of redis, never connected: refused by the acquire', async () => {
    await refusesToAcquire(nodeRedisOn(createClient({ url: redis.url })), 'LOCK_INVALID_ARGUMENT');
  });

  it('of redis, closed later: refused by the next acquire', async () => {
    const client = createClient({ url: redis.url });
    await client.connect();
    const backend = nodeRedisOn(client);
    await client.close();
    await refusesToAcquire(backend);
  });

  it('of ioredis in the subscriber mode of RESP2', async () => {
    const client = new Redis(redis.url, { protocol: 2 });
    await client.subscribe('channel');
    expect(() => ioredisOn(client)).toThrow(invalid);
    client.disconnect();
    await expect.poll(() => redis.command('PUBSUB', 'CHANNELS')).toEqual([]);
  });

  it('ends while a lease is held: its loss is reported in time, and its release rejects', async () => {
    await using lab = new Lab();
    const client = new Redis(redis.url);
    const locks = lab.use(createLocks(ioredisOn(client), { ttlMs: 300 }));
    const lease = await locks.lock('a').acquire();
    client.disconnect();
    await expect.poll(() => lease.signal.aborted, { timeout: 2_000 }).toBe(true);
    expect(lease.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'unconfirmed' });
    await expect.poll(() => redis.command('EXISTS', 'lock::a')).toBe(0);
    expect(await failure(lease.release())).toMatchObject({ code: 'LOCK_LOST' });
    // One token key for each slot that was ever used.
    await redis.command('FLUSHALL');
  });
});
