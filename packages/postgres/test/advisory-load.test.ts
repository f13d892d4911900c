import { createLocks } from '@locks/core';
import { type PostgresServer, startPostgres } from '@locks/test-servers';
import pg from 'pg';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { postgresAdvisoryBackend } from '../src/index.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

const MANY = 5_000;

it('a release does not wait behind 5 000 acquires of the same process', async () => {
  await using holders = createLocks(postgresAdvisoryBackend(server.url));
  const first = await holders.lock('own').acquire();
  let granted = 0;
  const leases = Array.from({ length: MANY }, (_, at) =>
    holders.lock(`many ${at}`).acquire({ waitMs: 60_000 }),
  );
  for (const lease of leases) lease.then(() => (granted += 1)).catch(() => undefined);
  await first.release();
  expect(granted).toBeLessThan(MANY / 2);
  await Promise.all(leases);
});

it('500 acquires at once of a lock that another process holds ask the server a few times', async () => {
  await using holders = createLocks(postgresAdvisoryBackend(server.url));
  await using locks = createLocks(postgresAdvisoryBackend(server.url));
  const held = await holders.lock('one').acquire();
  await locks.ping();
  const statements = vi.spyOn(pg.Client.prototype, 'query');
  const order: number[] = [];
  const turns = Array.from({ length: 500 }, (_, at) => locks.lock('one').run(() => void order.push(at)));
  await vi.waitFor(async () => expect((await holders.inspect('one')).waiters).toHaveLength(500));
  await held.release();
  await Promise.all(turns);
  const count = statements.mock.calls.length;
  statements.mockRestore();
  expect(count).toBeLessThan(50);
  expect(order).toEqual(Array.from({ length: 500 }, (_, at) => at));
});

const TRIES = 900;

it('900 attempts on a server without memory for more locks cost about one statement each', async () => {
  await using small = await startPostgres({
    settings: { max_locks_per_transaction: 10, max_connections: 10 },
  });
  // A busy machine answers the last ones late.
  await using locks = createLocks(postgresAdvisoryBackend(small.url), { answerMs: 30_000 });
  const lease = await locks.lock('own').acquire();
  const statements = vi.spyOn(pg.Client.prototype, 'query');
  const tries = Array.from({ length: TRIES }, (_, at) => locks.lock(`many ${at}`).tryAcquire());
  const outcomes = await Promise.allSettled(tries);
  const count = statements.mock.calls.length;
  statements.mockRestore();
  const refused = outcomes.filter(({ status }) => status === 'rejected');
  expect(refused.length).toBeGreaterThan(TRIES / 9);
  for (const { reason } of refused as PromiseRejectedResult[])
    expect(reason).toMatchObject({ code: 'LOCK_BACKEND', cause: { code: '53200' } });
  expect(count).toBeLessThan(2 * TRIES);
  await Promise.all(outcomes.map(async (one) => one.status === 'fulfilled' && (await one.value?.release())));
  const held = await small.query(
    `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1`,
  );
  expect(held[0]?.['count']).toBe('1');
  await lease.release();
});
