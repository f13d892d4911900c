import { setTimeout as sleep } from 'node:timers/promises';
import { type PostgresServer, type RedisServer, startPostgres, startRedis } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import * as advisoryLocks from '../src/migrating/from-advisory-locks.ts';
import * as asyncMutex from '../src/migrating/from-async-mutex.ts';
import * as redisSemaphore from '../src/migrating/from-redis-semaphore.ts';
import * as redlock from '../src/migrating/from-redlock.ts';
import * as redlockUniversal from '../src/migrating/from-redlock-universal.ts';
import * as verrou from '../src/migrating/from-verrou.ts';
import type { RunLocked } from '../src/migrating/run-locked.ts';

let server: RedisServer;
let postgres: PostgresServer;
let redis: Redis;
let redis5: Redis5;
let pool: pg.Pool;

beforeAll(async () => {
  [server, postgres] = await Promise.all([startRedis(), startPostgres()]);
  redis = new Redis(server.url);
  redis5 = new Redis5(server.url);
  pool = new pg.Pool({ connectionString: postgres.url, max: 20 });
});
afterAll(async () => {
  await pool.end();
  await Promise.all([redis.quit(), redis5.quit()]);
  await Promise.all([server.stop(), postgres.stop()]);
});

/** Locks under one name one after the other, and passes the work's value and its error on. */
async function check(run: RunLocked, other = run): Promise<void> {
  let inside = 0;
  const entered: number[] = [];
  const work = async (): Promise<string> => {
    inside += 1;
    entered.push(inside);
    await sleep(5);
    inside -= 1;
    return 'done';
  };
  const results = await Promise.all(
    Array.from({ length: 6 }, (_, index) => (index % 2 === 0 ? run : other)('a', work)),
  );
  expect(results).toEqual(Array(6).fill('done'));
  expect(entered).toEqual(Array(6).fill(1));
  await expect(run('a', () => Promise.reject(new Error('of the work')))).rejects.toThrow('of the work');
  expect(await run('a', work)).toBe('done');
}

it.each([
  ['redlock', 'before', () => redlock.before(redis)],
  ['redlock', 'after', () => redlock.after(redis)],
  ['redlock-universal', 'before', () => redlockUniversal.before(redis)],
  ['redlock-universal', 'after', () => redlockUniversal.after(redis)],
  ['redis-semaphore', 'before', () => redisSemaphore.before(redis)],
  ['redis-semaphore', 'after', () => redisSemaphore.after(redis)],
  // The types resolve to the ioredis of this package, which is version 6.
  ['@verrou/core', 'before', () => verrou.before(redis5 as unknown as Redis)],
  ['@verrou/core', 'after', () => verrou.after(redis)],
  ['async-mutex', 'before', () => asyncMutex.before()],
  ['async-mutex', 'after', () => asyncMutex.after()],
  ['advisory locks', 'before', () => advisoryLocks.before(pool)],
] as const)('code with %s, %s', async (_, __, make) => {
  await check(make());
});

it('code with advisory locks, after', async () => {
  await using run = advisoryLocks.after(pool);
  await check(run);
});

it('code with redlock-universal, before and after beside each other', async () => {
  await check(redlockUniversal.before(redis), redlockUniversal.after(redis));
});
