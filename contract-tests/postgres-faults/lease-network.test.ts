import { type PostgresServer, startPostgres, waitUntil } from '@locks/test-servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { failure, untilWaiting } from '../src/fault-lab/observe.ts';
import LeaseLab, { SLACK_MS, untilStoreKnows, urlOf } from './lease-lab.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

let schemas = 0;
function schema(): string {
  schemas += 1;
  return `network_${schemas}`;
}

describe.concurrent('what happens to the network of a lease table', { timeout: 40_000 }, () => {
  it('a blackhole under whoever makes the schema: it is made on another connection, and all who call go on', async () => {
    await using lab = new LeaseLab();
    const proxy = await lab.proxy(server);
    const name = schema();
    const key = `hashtextextended('@locks/postgres "${name}"', 0)`;
    const other = new pg.Client({ connectionString: urlOf(server) });
    await other.connect();
    await other.query(`SELECT pg_advisory_lock(${key})`);
    const locks = lab.locks(proxy, { schema: name });
    const entered = locks.lock('a').acquire({ waitMs: 30_000 });
    const migrating = `SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND objsubid = 1
      AND classid = (${key} >> 32) & 4294967295 AND objid = ${key} & 4294967295`;
    await waitUntil(async () => (await server.query(migrating)).length > 0, {
      what: 'the migration to begin',
    });
    const known = proxy.connections();
    proxy.blackhole({ only: (connection) => known.includes(connection) });
    // The server goes on with it, and hears nothing more of that client.
    await other.end();
    await (await entered).release();
    await lab
      .locks(server, { schema: name })
      .lock('a')
      .run(() => undefined);
  });

  it('a blackhole in the second half of a wait: LOCK_BACKEND, for the store gave no answer for so long', async () => {
    await using lab = new LeaseLab();
    const proxy = await lab.proxy(server);
    const name = schema();
    const [far, holder] = [
      lab.locks(proxy, { ttlMs: 20_000, schema: name }),
      lab.locks(server, { ttlMs: 20_000, schema: name }),
    ];
    await far.lock('warm').run(() => undefined);
    const lease = await holder.lock('a').acquire();
    const failed = failure(far.lock('a').acquire({ waitMs: 4_500 }));
    await new Promise((resolve) => setTimeout(resolve, 2_150));
    proxy.blackhole();
    expect(await failed).toMatchObject({ code: 'LOCK_BACKEND' });
    await lease.release();
  });

  it('a blackhole under the listener alone: the message is lost, and a check finds the turn', async () => {
    await using lab = new LeaseLab();
    const proxy = await lab.proxy(server);
    const name = schema();
    const holder = lab.locks(server, { ttlMs: 20_000, schema: name });
    const waiter = lab.locks(server, {
      ttlMs: 20_000,
      schema: name,
      listen: { url: urlOf(proxy) },
    });
    const lease = await holder.lock('a').acquire();
    const entered = waiter.lock('a').acquire({ waitMs: 15_000 });
    await untilWaiting(holder, 'a');
    await untilStoreKnows(server, name, 1);
    proxy.blackhole();
    await lease.release();
    const releasedAt = performance.now();
    const next = await entered;
    // The next check, its time limit on the silent connection, and the same over the pool.
    expect(performance.now() - releasedAt).toBeLessThan(1_000 + 1_000 + SLACK_MS);
    next.assertValid();
    await next.release();
  });

  it('a connection that gives no answer is closed: a pool of one goes on with another', async () => {
    await using lab = new LeaseLab();
    const proxy = await lab.proxy(server);
    const locks = lab.locks(proxy, {
      ttlMs: 20_000,
      schema: schema(),
      pool: { connectionString: urlOf(proxy), max: 1, connectionTimeoutMillis: 0 },
    });
    const lease = await locks.lock('a').acquire();
    const silent = proxy.connections();
    proxy.blackhole({ only: (connection) => silent.includes(connection) });
    await lease.release();
    await locks.lock('b').run(() => undefined, { waitMs: 2_000 });
  });
});
