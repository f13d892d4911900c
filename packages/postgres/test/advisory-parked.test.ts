import { createLocks } from '@locks/core';
import { startPostgres, waitUntil } from '@locks/test-servers';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { advisoryKey, postgresAdvisoryBackend } from '../src/index.ts';

const WAITERS = 200;

let server: Awaited<ReturnType<typeof startPostgres>>;
beforeAll(async () => {
  server = await startPostgres({
    settings: { shared_preload_libraries: 'pg_stat_statements', 'pg_stat_statements.track': 'top' },
  });
  await server.query('CREATE EXTENSION pg_stat_statements');
});
afterAll(() => server.stop());

async function statements(): Promise<number> {
  const sql = `SELECT sum(calls)::int4 AS calls FROM pg_stat_statements WHERE query LIKE '%advisory_lock%'`;
  return Number((await server.query(sql))[0]?.['calls'] ?? 0);
}

async function lockedBy(application: string): Promise<number> {
  const sql = `SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND application_name = '${application}'`;
  return (await server.query(sql)).length;
}

it('tries the locks of all waiters without a connection in one statement, and releases what nobody wants any more', async () => {
  const names = Array.from({ length: WAITERS }, (_, index) => `parked ${index}`);
  const holder = new pg.Client({ connectionString: server.url });
  await holder.connect();
  const keys = names.map((name) => String(advisoryKey(name)));
  await holder.query('SELECT pg_advisory_lock(k) FROM unnest($1::int8[]) k', [keys]);
  const connectionString = `${server.url}?application_name=parked`;
  await using locks = createLocks(postgresAdvisoryBackend(connectionString, { maxConnections: 3 }));
  const controller = new AbortController();
  const waits = names.map((name, index) => {
    const signal = index % 2 === 0 ? controller.signal : undefined;
    const read = index % 4 < 2;
    const lock = read ? locks.readWriteLock(name).read : locks.lock(name);
    return lock.acquire({ waitMs: 30_000, ...(signal && { signal }) });
  });
  const outcomes = Promise.allSettled(waits);
  const queued = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`;
  await waitUntil(async () => (await server.query(queued)).length === 2, {
    what: 'two waiters in the queue',
  });

  const [before, from] = [await statements(), performance.now()];
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const seconds = (performance.now() - from) / 1_000;
  expect(((await statements()) - before) / seconds).toBeLessThanOrEqual(20);

  // The locks become free in the same moment in which half of the waiters leave.
  const freed = holder.query('SELECT pg_advisory_unlock_all()');
  controller.abort();
  await freed;
  const leases = (await outcomes).flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  expect(leases.length).toBeGreaterThanOrEqual(WAITERS / 2);
  await waitUntil(async () => (await lockedBy('parked')) === leases.length, {
    what: 'nothing else to be locked',
  });
  await Promise.all(leases.map((lease) => lease.release()));
  expect(await lockedBy('parked')).toBe(0);
  await holder.end();
});
