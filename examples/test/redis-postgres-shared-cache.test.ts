import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks, type FencedLockManager } from '@locks/core';
import type { ResultStore } from '@locks/once';
import { postgresLeaseBackend, postgresResults } from '@locks/postgres';
import { redisBackend, redisResults } from '@locks/redis-ioredis';
import { type PostgresServer, type RedisServer, startPostgres, startRedis } from '@locks/test-servers';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { SharedPrices } from '../src/shared-cache.ts';

let server: RedisServer;
let postgres: PostgresServer;
let clients: Redis[];
let pools: pg.Pool[];

beforeAll(async () => {
  [server, postgres] = await Promise.all([startRedis(), startPostgres()]);
  clients = [1, 2, 3].map(() => new Redis(server.url));
  pools = [1, 2, 3].map(() => new pg.Pool({ connectionString: postgres.url, max: 5 }));
});
afterAll(async () => {
  await Promise.all([...clients.map((client) => client.quit()), ...pools.map((pool) => pool.end())]);
  await Promise.all([server.stop(), postgres.stop()]);
});

const machinesOn: Record<string, () => { locks: FencedLockManager; store: ResultStore }[]> = {
  redis: () =>
    clients.map((client) => ({ locks: createLocks(redisBackend(client)), store: redisResults(client) })),
  postgres: () =>
    pools.map((pool) => ({
      locks: createLocks(postgresLeaseBackend(pool)),
      store: postgresResults(pool),
    })),
};

it.each(['redis', 'postgres'])(
  'a slow source is asked once for all requests of three machines: %s',
  async (on) => {
    const machines = machinesOn[on]?.() ?? [];
    let asked = 0;
    const ask = async (): Promise<Record<string, number>> => {
      asked += 1;
      await sleep(50);
      return { tea: asked };
    };
    const prices = machines.map(({ locks, store }) => new SharedPrices(locks, store, ask));
    const [one, two, three] = prices as [SharedPrices, SharedPrices, SharedPrices];
    const request = new AbortController();
    const gone = one.get(request.signal);
    const asks = Array.from({ length: 100 }, () =>
      [one, two, three].map((of) => of.get(new AbortController().signal)),
    );
    request.abort(new Error('the request ended'));
    await expect(gone).rejects.toThrow('the request ended');
    expect(await Promise.all(asks.flat())).toEqual(Array(300).fill({ tea: 1 }));
    expect(await three.get()).toEqual({ tea: 1 });
    expect(asked).toBe(1);
    await Promise.all(machines.map(({ locks }) => locks.close()));
  },
);
