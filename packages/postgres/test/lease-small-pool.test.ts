import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LeaseFixture } from './lease-fixture.ts';

let fixture: LeaseFixture;
beforeAll(async () => {
  fixture = await LeaseFixture.start();
});
afterAll(() => fixture[Symbol.asyncDispose]());

/** Takes all connections of a pool, as an application in long transactions does. */
async function takeAll(pool: pg.Pool): Promise<() => void> {
  const clients = await Promise.all(Array.from({ length: pool.options.max ?? 10 }, () => connect(pool)));
  return () => {
    for (const client of clients) client.release();
  };
}

/** Connects, again where a busy server takes longer than the pool waits. */
async function connect(pool: pg.Pool): Promise<pg.PoolClient> {
  for (;;) {
    try {
      return await pool.connect();
    } catch (error) {
      if (!(error as Error).message.includes('timeout exceeded')) throw error;
    }
  }
}

describe('a pool that the application uses up', () => {
  it.each([{}, { connectionTimeoutMillis: 50 }])('costs no lease: %o', async (config) => {
    const schema = fixture.schema();
    const pool = fixture.pool({ max: 5, ...config });
    const locks = fixture.locks({ pool, schema });
    const others = fixture.locks({ schema });
    await using lease = await locks.lock('small', { ttlMs: 1_000 }).acquire();
    const giveBack = await takeAll(pool);
    try {
      await delay(1_500);
      expect(lease.signal.aborted).toBe(false);
      // The release needs no connection of the pool either.
      await lease.release();
      await others.lock('small').run(() => undefined, { waitMs: 1_000 });
    } finally {
      giveBack();
    }
  });

  it('is named by an acquire that gets no connection', async () => {
    const pool = fixture.pool({ max: 2 });
    const locks = fixture.locks({ pool, schema: fixture.schema() });
    await locks.lock('named').run(() => undefined);
    const giveBack = await takeAll(pool);
    try {
      await expect(locks.lock('named').acquire({ waitMs: 400 })).rejects.toMatchObject({
        code: 'LOCK_BACKEND',
        message: expect.stringMatching(/all 2 connections of the pool have been in use for \d+ ms/),
      });
    } finally {
      giveBack();
    }
    await using _ = await locks.lock('named').acquire({ waitMs: 1_000 });
  });
});

it('50 waiters on a pool of two leave the application its connections', async () => {
  const pool = fixture.pool({ max: 2 });
  const locks = fixture.locks({ pool, schema: fixture.schema() });
  const held = await locks.lock('crowd').acquire();
  let done = 0;
  const waiters = Array.from({ length: 50 }, async () => {
    await locks.lock('crowd').run(() => delay(1), { waitMs: 30_000 });
    done += 1;
  });
  const worstMs = async (): Promise<number> => {
    let worst = 0;
    for (let query = 0; query < 50; query += 1) {
      const startedAt = performance.now();
      await pool.query('SELECT 1');
      worst = Math.max(worst, performance.now() - startedAt);
    }
    return worst;
  };
  expect(await worstMs()).toBeLessThan(200);
  await held.release();
  expect(await worstMs()).toBeLessThan(200);
  await Promise.all(waiters);
  expect(done).toBe(50);
});
