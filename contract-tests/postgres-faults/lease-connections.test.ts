import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Lease } from '@locks/core';
import { type PostgresServer, startPgbouncer, startPostgres, waitUntil } from '@locks/test-servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { failure, untilWaiting } from '../src/fault-lab/observe.ts';
import LeaseLab, { isListener, SLACK_MS, untilListening, urlOf } from './lease-lab.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
  await server.query(roles.map((name) => `CREATE ROLE ${name} LOGIN SUPERUSER`).join(';'));
});
afterAll(() => server.stop());

// A role, and a schema of that name, for each test that ends connections: it shall end only its own.
const roles = ['killed_holder', 'killed_listener', 'idle', 'cancelled', 'failing'];
const by = (role: string): { schema: string; pool: pg.PoolConfig } => ({
  schema: role,
  pool: { connectionString: urlOf(server, role) },
});

/** Resolves when a lease was renewed so many times. */
function renewals({ acquisitionId }: Lease, count: number): Promise<void> {
  return new Promise((resolve) => {
    let left = count;
    const note = (message: unknown): void => {
      if ((message as Partial<Lease>).acquisitionId === acquisitionId) left -= 1;
      if (left > 0) return;
      unsubscribe('locks:renewed', note);
      resolve();
    };
    subscribe('locks:renewed', note);
  });
}

describe.concurrent('what happens to the connections of a lease table', { timeout: 30_000 }, () => {
  it("pg_terminate_backend of the holder's: the lease goes on over another", async () => {
    await using lab = new LeaseLab();
    const locks = lab.locks(server, { ttlMs: 3_000, ...by('killed_holder') });
    const lease = await locks.lock('a').acquire();
    expect(await server.terminate("usename = 'killed_holder'")).toBeGreaterThan(0);
    await renewals(lease, 1);
    lease.assertValid();
    await server.terminate("usename = 'killed_holder'");
    await lease.release();
    await locks.lock('a').run(() => undefined);
  });

  it("pg_terminate_backend of the listener's, again and again: no hand-off waits for longer than a check", async () => {
    await using lab = new LeaseLab();
    const options = { ttlMs: 20_000, ...by('killed_listener') };
    const [holder, waiter] = [lab.locks(server, options), lab.locks(server, options)];
    for (let round = 0; round < 3; round += 1) {
      const lease = await holder.lock('a').acquire();
      const entered = waiter.lock('a').acquire();
      await untilWaiting(holder, 'a');
      await waitUntil(
        async () => (await server.terminate(`usename = 'killed_listener' AND ${isListener}`)) > 0,
        {
          what: 'a listener to end',
        },
      );
      const releasedAt = performance.now();
      await lease.release();
      const next = await entered;
      expect(performance.now() - releasedAt).toBeLessThan(1_000 + SLACK_MS);
      await next.release();
    }
  });

  it('idle_session_timeout ends none that matters', async () => {
    await using lab = new LeaseLab();
    await server.query('ALTER ROLE idle SET idle_session_timeout = 300');
    const options = { ttlMs: 3_000, ...by('idle') };
    const [holder, waiter] = [lab.locks(server, options), lab.locks(server, options)];
    const lease = await holder.lock('a').acquire();
    const entered = waiter.lock('a').acquire();
    await untilWaiting(holder, 'a');
    const listener = `SELECT pid FROM pg_stat_activity WHERE usename = 'idle' AND ${isListener}`;
    await waitUntil(async () => (await server.query(listener)).length === 1, { what: 'a listener' });
    const before = await server.query(listener);
    // Each after a second: three times the timeout.
    await renewals(lease, 2);
    lease.assertValid();
    expect(await server.query(listener)).toEqual(before);
    const releasedAt = performance.now();
    await lease.release();
    const next = await entered;
    expect(performance.now() - releasedAt).toBeLessThan(SLACK_MS);
    await next.release();
  });

  it('statement_timeout: what is cancelled is tried again, and reported when that goes on', async () => {
    await using lab = new LeaseLab();
    const url = urlOf(server, 'cancelled');
    const locks = lab.locks(server, {
      schema: 'cancelled',
      pool: { connectionString: url, statement_timeout: 150 },
    });
    await locks.lock('warm').run(() => undefined);
    const admin = new pg.Client({ connectionString: url });
    await admin.connect();
    await admin.query('BEGIN; LOCK TABLE cancelled.locks IN ACCESS EXCLUSIVE MODE');
    expect(await failure(locks.lock('a').acquire({ waitMs: 1_000 }))).toMatchObject({
      code: 'LOCK_BACKEND',
      cause: { code: '57014' },
    });
    const cancelled = () =>
      server.logTail(1_000_000).split('canceling statement due to statement timeout').length;
    const before = cancelled();
    const entered = locks.lock('a').acquire({ waitMs: 10_000 });
    await waitUntil(() => cancelled() > before, { what: 'a statement to be cancelled' });
    await admin.query('COMMIT');
    await admin.end();
    await (await entered).release();
  });

  it('a statement that fails leaves the connections of the pool as they were', async () => {
    await using lab = new LeaseLab();
    const pool = new pg.Pool({ connectionString: urlOf(server, 'failing'), max: 1, allowExitOnIdle: true });
    await using _ended = { [Symbol.asyncDispose]: () => pool.end() };
    const { createLocks } = await import('@locks/core');
    const { postgresLeaseBackend } = await import('@locks/postgres');
    const locks = lab.use(createLocks(postgresLeaseBackend(pool, { schema: 'failing' })));
    await locks.lock('warm').run(() => undefined);
    const pid = async () =>
      (await pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid;
    const before = await pid();
    const rename = (from: string, to: string) => pool.query(`ALTER TABLE failing.${from} RENAME TO ${to}`);
    await rename('locks', 'hidden');
    expect(await failure(locks.lock('a').acquire())).toMatchObject({
      code: 'LOCK_BACKEND',
      cause: { code: '42P01' },
    });
    await rename('hidden', 'locks');
    await locks.lock('a').run(() => undefined);
    expect(await pid()).toBe(before);
  });

  it('through PgBouncer in transaction mode it says that it polls, and hands off within a poll or two', async () => {
    await using lab = new LeaseLab();
    const bouncer = lab.use(await startPgbouncer(server, { poolSize: 2 }));
    const warned = new Promise<Error>((resolve) => {
      process.on('warning', (warning) => {
        if ((warning as { code?: string }).code === 'LOCKS_POSTGRES_POLLING') resolve(warning);
      });
    });
    const [holder, waiter] = [lab.locks(bouncer, { ttlMs: 20_000 }), lab.locks(bouncer, { ttlMs: 20_000 })];
    const lease = await holder.lock('a').acquire();
    const entered = waiter.lock('a').acquire();
    await untilWaiting(holder, 'a');
    await warned;
    const releasedAt = performance.now();
    await lease.release();
    await (await entered).release();
    expect(performance.now() - releasedAt).toBeLessThan(SLACK_MS);
  });

  it('through PgBouncer in session mode it listens', async () => {
    await using lab = new LeaseLab();
    const bouncer = lab.use(await startPgbouncer(server, { poolMode: 'session', poolSize: 20 }));
    const [holder, waiter] = [
      lab.locks(bouncer, { schema: 'sessions', ttlMs: 20_000 }),
      lab.locks(bouncer, { schema: 'sessions', ttlMs: 20_000 }),
    ];
    const lease = await holder.lock('a').acquire();
    const entered = waiter.lock('a').acquire();
    const listening = 'SELECT 1 FROM sessions.clients WHERE listener IS NOT NULL';
    await waitUntil(async () => (await server.query(listening)).length === 1, {
      what: 'the waiter to listen',
    });
    await lease.release();
    await (await entered).release();
  });

  it('through PgBouncer, with a direct address to listen on, hundreds of locks share two connections', async () => {
    await using lab = new LeaseLab();
    const bouncer = lab.use(await startPgbouncer(server, { poolSize: 2 }));
    const listen = { url: server.url };
    const [one, two] = [
      lab.locks(bouncer, { schema: 'bounced', listen, pool: { max: 20 } }),
      lab.locks(bouncer, { schema: 'bounced', listen, pool: { max: 20 } }),
    ];
    let inside = 0;
    let most = 0;
    await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        (index % 2 === 0 ? one : two).lock(`lock ${index % 10}`).run(
          async () => {
            inside += 1;
            most = Math.max(most, inside);
            await new Promise((resolve) => setTimeout(resolve, 1));
            inside -= 1;
          },
          { waitMs: 20_000 },
        ),
      ),
    );
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(10);
    await untilListening(server, 2);
    // None was prepared on a connection that was then lent to somebody else.
    expect(server.logTail(5_000)).not.toContain('prepared statement');
  });
});
