import { createLocks, type LockManager } from '@locks/core';
import { redisBackend } from '@locks/redis-ioredis';
import { type RedisServer, startRedis, waitUntil } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CompiledApplication, type RunningApplication } from './running-application.ts';

let server: RedisServer;
let compiled: CompiledApplication;
let redis: Redis;
let locks: LockManager;

beforeAll(async () => {
  [server, compiled] = await Promise.all([startRedis(), CompiledApplication.compile()]);
  redis = new Redis(server.url);
  locks = createLocks(redisBackend(redis)) as LockManager;
});
beforeEach(() => redis.flushall());
afterAll(async () => {
  await compiled?.[Symbol.asyncDispose]();
  await locks?.close();
  await redis?.quit();
  await server?.stop();
});

const start = (drainMs = 20_000): Promise<RunningApplication> =>
  compiled.start({ REDIS_URL: server.url, DRAIN_MS: String(drainMs) });

/** The ttl of the application's locks is 60 s: who gets one within this time got it by a release. */
const WAIT_MS = 30_000;

describe('two processes of an application', () => {
  it('under load sell every unit once', async () => {
    const shops = await Promise.all([start(), start()]);
    await redis.mset({ 'units:a': 50, 'units:b': 30 });
    const sales = ['a', 'b'].flatMap((sku) =>
      Array.from({ length: 60 }, (_, index) => (shops[index % 2] as RunningApplication).post(`sell/${sku}`)),
    );
    const answers = await Promise.all(sales);
    expect(answers.filter((answer) => answer === 'sold')).toHaveLength(80);
    expect(answers.filter((answer) => answer === 'sold out')).toHaveLength(40);
    expect(await redis.mget('units:a', 'units:b')).toEqual(['0', '0']);
    expect(await Promise.all(shops.map((shop) => shop.health()))).toEqual([200, 200]);
    await Promise.all(shops.map((shop) => shop.kill()));
  });

  it('run a job of @Once() once', async () => {
    const shops = await Promise.all([start(), start()]);
    const calls = Array.from({ length: 10 }, (_, index) =>
      (shops[index % 2] as RunningApplication).post('report'),
    );
    await Promise.all(calls);
    const tokens = await redis.lrange('reports', 0, -1);
    // Two where the hour ended between the calls.
    expect(tokens.length).toBeLessThanOrEqual(2);
    expect(tokens[0]).toMatch(/^\d+$/);
    await Promise.all(shops.map((shop) => shop.kill()));
  });
});

describe('SIGTERM while a method of @Locked() runs', () => {
  async function countsAndEnds(shop: RunningApplication): Promise<unknown> {
    await waitUntil(async () => (await redis.get('counts:begun')) === '1', { what: 'the count to begin' });
    shop.terminate();
    const next = await locks.lock('count').acquire({ waitMs: WAIT_MS });
    // As the next one finds it: whoever held the lock before has ended.
    const ended = await redis.get('counts:ended');
    await next.release();
    const { code, signal } = await shop.ended();
    expect(signal ?? code).toBe('SIGTERM');
    return ended;
  }

  it('in a request: it is answered, then the lock is free', async () => {
    const shop = await start();
    const answer = shop.post('count/1500');
    expect(await countsAndEnds(shop)).toBe('1');
    expect(await answer).toBe('counted');
  });

  it('in the background: it ends, then the lock is free', async () => {
    const shop = await start();
    await shop.post('count-later/1500');
    expect(await countsAndEnds(shop)).toBe('1');
  });

  it('for longer than drainMs: the process ends, and the lock is free before its ttl is over', async () => {
    const shop = await start(100);
    await shop.post('count-later/3600000');
    expect(await countsAndEnds(shop)).toBe(null);
  });
});
