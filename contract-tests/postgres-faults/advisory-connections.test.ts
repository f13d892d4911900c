import { createLocks } from '@locks/core';
import { postgresAdvisoryBackend } from '@locks/postgres';
import { startPgbouncer, waitUntil } from '@locks/test-servers';
import pg from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import { failure, untilWaiting } from '../src/fault-lab/observe.ts';
import AdvisoryLab, {
  freshName,
  locksOf,
  onServer,
  sharedServer,
  stopSharedServer,
  untilFree,
  untilQueued,
} from './advisory-lab.ts';

afterAll(stopSharedServer);

describe.concurrent('connections', { timeout: 60_000 }, () => {
  it('a thousand locks at once are on one connection', async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const locks = lab.locks(server, { name, sessionTimeoutMs: 15_000 });
    const leases = await Promise.all(
      Array.from({ length: 1_000 }, (_, index) => locks.lock(`${name} ${index}`).acquire({ waitMs: 20_000 })),
    );
    const sessions = await server.query(
      `SELECT count(*) FROM pg_stat_activity WHERE application_name = '${name}'`,
    );
    expect(sessions[0]?.['count']).toBe('1');
    expect(await locksOf(server, name)).toBe(1_000);
    for (const lease of leases) lease.assertValid();
    await Promise.all(leases.map((lease) => lease.release()));
    expect(await locksOf(server, name)).toBe(0);
  });

  it('a pool of 1 with 20 locks wanted, of one name and of many: all get in, and the pool is free for its application', async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const pool = new pg.Pool({ connectionString: server.url, max: 1 });
    await using locks = lab.use(createLocks(postgresAdvisoryBackend(pool, { maxConnections: 1 })));
    const served: number[] = [];
    await Promise.all([
      ...Array.from({ length: 20 }, (_, index) =>
        locks.lock(`${name} own ${index}`).run(() => pool.query('SELECT 1')),
      ),
      ...Array.from({ length: 20 }, (_, index) =>
        locks.lock(name).run(() => {
          served.push(index);
        }),
      ),
    ]);
    expect(served).toEqual(Array.from({ length: 20 }, (_, index) => index));
    await pool.end();
  });

  it('where connections run out, waits go on by polling, and a freed connection joins the queue', async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const patient = { sessionTimeoutMs: 15_000 };
    const [holder, few] = [lab.locks(server, patient), lab.locks(server, { ...patient, maxConnections: 2 })];
    const names = ['a', 'b', 'c'].map((one) => `${name} ${one}`) as [string, string, string];
    const held = await Promise.all(names.map((name) => holder.lock(name).acquire()));
    const entered = names.map((name) => few.lock(name).acquire({ waitMs: 20_000 }));
    const queued = async () =>
      (await Promise.all(names.map((name) => onServer(server, name)))).reduce(
        (sum, { waiting }) => sum + waiting,
        0,
      );
    await waitUntil(async () => (await queued()) === 1, { what: 'one wait in the queue' });
    await held[2]?.release();
    await held[0]?.release();
    await (await entered[0])?.release();
    // Its connection is free now, for a name that is still held.
    await untilQueued(server, names[1], 1);
    await held[1]?.release();
    for (const lease of await Promise.all(entered.slice(1))) await lease.release();
    for (const name of names) await untilFree(server, name);
  });

  it('a grant and a cancel meet: the server says no, and has locked; nothing is left of it', async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const [holder, waiter] = [lab.locks(server), lab.locks(server, { name: `waiter ${name}` })];
    const lease = await holder.lock(name).acquire();
    const controller = new AbortController();
    const waiting = waiter.lock(name).acquire({ signal: controller.signal });
    await untilWaiting(holder, name);
    const [row] = await server.query(
      `SELECT pid FROM pg_stat_activity WHERE application_name = 'waiter ${name}' AND wait_event_type = 'Lock'`,
    );
    const pid = Number(row?.['pid']);
    // The server process of the wait stands still while it is cancelled, and while it is granted.
    process.kill(pid, 'SIGSTOP');
    controller.abort();
    await expect(waiting).rejects.toBe(controller.signal.reason);
    await new Promise((resolve) => setTimeout(resolve, 150));
    await lease.release();
    expect(await onServer(server, name)).toEqual({ granted: 1, waiting: 0 });
    process.kill(pid, 'SIGCONT');
    await untilFree(server, name, 3_000);
    const alive = await server.query(`SELECT 1 FROM pg_stat_activity WHERE pid = ${pid}`);
    expect(alive).toHaveLength(1);
    await (await holder.lock(name).acquire()).release();
  });

  it('a wait that is given up leaves the queue at once, and its connection is of use to the next', async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const [holder, waiter] = [lab.locks(server), lab.locks(server, { name, sessionTimeoutMs: 15_000 })];
    const lease = await holder.lock(name).acquire();
    const sessions = `SELECT pid FROM pg_stat_activity WHERE application_name = '${name}' ORDER BY pid`;
    let before: unknown;
    for (let round = 0; round < 3; round += 1) {
      const controller = new AbortController();
      const waiting = waiter.lock(name).acquire({ signal: controller.signal });
      await untilWaiting(holder, name);
      before ??= await server.query(sessions);
      controller.abort();
      await expect(waiting).rejects.toBe(controller.signal.reason);
      const gone = async () => (await onServer(server, name)).waiting === 0;
      await waitUntil(gone, { what: 'the wait to leave the queue', timeoutMs: 950 });
      expect(await server.query(sessions)).toEqual(before);
    }
    await lease.release();
  });

  it('waits that are given up as the lock comes free leave nothing behind', async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const [holder, waiter] = [lab.locks(server), lab.locks(server)];
    for (let round = 0; round < 60; round += 1) {
      const lease = await holder.lock(name).acquire();
      const controller = new AbortController();
      const acquiring = waiter.lock(name).acquire({ signal: controller.signal });
      acquiring.catch(() => undefined);
      if (round % 3 > 0) await untilWaiting(holder, name);
      const releasing = lease.release();
      if (round % 2 === 0) await Promise.resolve();
      controller.abort();
      await releasing;
      await acquiring.then(
        (next) => next.release(),
        () => undefined,
      );
      await untilFree(server, name);
    }
  });

  it('is refused behind PgBouncer in transaction mode, and nothing stays there; in session mode it works', async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    for (const poolMode of ['transaction', 'statement'] as const) {
      const pooler = lab.use(await startPgbouncer(server, { poolMode }));
      const error = await failure(lab.locks(pooler, { name }).lock(name).acquire());
      expect(error).toMatchObject({ code: 'LOCK_UNSUPPORTED' });
      expect(error.message).toContain('pool_mode');
      expect(await locksOf(server, name)).toBe(0);
    }
    const pooler = lab.use(await startPgbouncer(server, { poolMode: 'session' }));
    const [one, two] = [lab.locks(pooler), lab.locks(pooler)];
    const lease = await one.lock(name).acquire();
    const entered = two.lock(name).acquire();
    await untilWaiting(two, name);
    await lease.release();
    await (await entered).release();
  });

  it('is refused on a busy pooler in transaction mode too', async () => {
    await using lab = new AdvisoryLab();
    const server = await sharedServer();
    const name = freshName();
    const pooler = lab.use(await startPgbouncer(server, { poolMode: 'transaction', poolSize: 4 }));
    const busy = Array.from({ length: 8 }, async () => {
      const client = new pg.Client({ connectionString: pooler.url });
      await client.connect();
      for (let index = 0; index < 60; index += 1) await client.query('SELECT pg_sleep(0.01)');
      await client.end();
    });
    const locks = lab.locks(pooler, { name });
    for (let call = 0; call < 3; call += 1)
      expect(await failure(locks.lock(name).acquire())).toMatchObject({ code: 'LOCK_UNSUPPORTED' });
    await Promise.all(busy);
    // The lock of the test does not stay in a session of the pooler.
    const left = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory'";
    await waitUntil(async () => (await server.query(left)).length === 0, { what: 'no lock of the test' });
  });
});
