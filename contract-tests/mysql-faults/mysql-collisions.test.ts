import { setTimeout as sleep } from 'node:timers/promises';
import { waitUntil } from '@locks/test-servers';
import type { Connection } from 'mysql2/promise';
import { describe, expect, it } from 'vitest';
import { failure, later } from '../src/fault-lab/observe.ts';
import Lab, { rows } from './lab.ts';

async function deadlocks(admin: Connection): Promise<number> {
  const [row] = await rows(admin, "SHOW GLOBAL STATUS LIKE 'Innodb_deadlocks'");
  return Number(row?.['Value']);
}

/** The server refreshes this table only when nobody has read it for a tenth of a second. */
async function untilOneWaitsForARow(admin: Connection): Promise<void> {
  const waiting = async () =>
    (await rows(admin, "SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'")).length >
    0;
  await waitUntil(waiting, { what: 'a statement to wait for a row', everyMs: 150 });
}

describe.concurrent("transactions of others on the locks' rows", { timeout: 30_000 }, () => {
  it('a deadlock in which the server sacrifices our statement: it is repeated, and nobody notices', async () => {
    await using lab = new Lab();
    const server = await lab.server();
    const [admin, other] = [await lab.admin(server), await lab.admin(server)];
    const locks = await lab.locks(server, { ttlMs: 9_000 });
    // Renewed in one statement, in the order of their names.
    const leases = await Promise.all(['a', 'b'].map((name) => locks.lock(name).acquire({ renewal: 'auto' })));
    // Whoever has changed more rows is spared.
    await admin.query('CREATE TABLE heavy (id INT PRIMARY KEY) ENGINE=InnoDB');
    await other.query('START TRANSACTION');
    await other.query(
      `INSERT INTO heavy VALUES ${Array.from({ length: 300 }, (_, id) => `(${id})`).join(',')}`,
    );
    await other.query("SELECT * FROM locks_locks WHERE name = 'b' FOR UPDATE");
    const before = await deadlocks(admin);
    // The watchdog renews both after a third of the ttl; it has `a` and waits for `b`.
    await untilOneWaitsForARow(admin);
    await other.query("SELECT * FROM locks_locks WHERE name = 'a' FOR UPDATE");
    expect((await deadlocks(admin)) - before).toBe(1);
    await other.query('COMMIT');
    for (const lease of leases) {
      await waitUntil(() => lease.validForMs > 6_500, { what: 'the renewal to have succeeded' });
      await lease.release();
    }
  });

  it('a wait for a row that the server gives up (1205) is repeated within waitMs', async () => {
    await using lab = new Lab();
    const server = await lab.server({ args: ['--innodb-lock-wait-timeout=1'] });
    const [admin, other] = [await lab.admin(server), await lab.admin(server)];
    const locks = await lab.locks(server);
    await locks.lock('a').run(() => undefined);
    await other.query('START TRANSACTION');
    await other.query("SELECT * FROM locks_locks WHERE name = 'a' FOR UPDATE");
    const acquired = later(locks.lock('a').acquire({ waitMs: 15_000 }));
    await untilOneWaitsForARow(admin);
    await sleep(1_400);
    await other.query('COMMIT');
    await (await acquired).release();
  });

  it('a row that somebody else keeps locked: LOCK_BACKEND in time, and nothing is left when it is free', async () => {
    await using lab = new Lab();
    const server = await lab.server();
    const other = await lab.admin(server);
    const locks = await lab.locks(server, { ttlMs: 1_000 });
    await locks.lock('a').run(() => undefined);
    await other.query('START TRANSACTION');
    await other.query("SELECT * FROM locks_locks WHERE name = 'a' FOR UPDATE");
    const startedAt = performance.now();
    expect(await failure(locks.lock('a').acquire({ waitMs: 600 }))).toMatchObject({ code: 'LOCK_BACKEND' });
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    // Another name is not touched by it.
    await locks.lock('b').run(() => undefined);
    await other.query('COMMIT');
    const lease = await locks.lock('a').acquire({ waitMs: 5_000 });
    await lease.release();
    expect(await locks.inspect('a')).toMatchObject({ holders: [], waiters: [] });
  });
});
