import { setTimeout as sleep } from 'node:timers/promises';
import { waitUntil } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { failure, later, lossOf, untilWaiting } from '../src/fault-lab/observe.ts';
import Lab, { killAll, rows } from './lab.ts';

describe.concurrent('what an administrator or the server does to connections', { timeout: 30_000 }, () => {
  it('KILL of the connections under holder and waiter: the lease goes on, the waiter keeps its position', async () => {
    await using lab = new Lab();
    const server = await lab.server();
    const admin = await lab.admin(server);
    const [one, two] = [await lab.locks(server, { ttlMs: 2_500 }), await lab.locks(server)];
    const third = await lab.locks(server);
    const lease = await one.lock('a').acquire();
    const second = later(two.lock('a').acquire());
    await untilWaiting(one, 'a');
    const behind = later(third.lock('a').acquire());
    await untilWaiting(one, 'a', 2);
    for (let round = 0; round < 8; round += 1) {
      await waitUntil(async () => (await killAll(admin)) > 0, { what: 'a connection that can be killed' });
      await sleep(350);
    }
    // Longer than the ttl: it was renewed on new connections.
    lease.assertValid();
    expect(lease.signal.aborted).toBe(false);
    await killAll(admin);
    await lease.release();
    const next = await second;
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken as bigint);
    await next.release();
    await (await behind).release();
    expect((await one.inspect('a')).holders).toEqual([]);
  });

  it('KILL in the middle of many operations: no double hold, no unhandled error, all get their turn', async () => {
    await using lab = new Lab();
    const server = await lab.server();
    const admin = await lab.admin(server);
    const managers = await Promise.all([lab.locks(server), lab.locks(server), lab.locks(server)]);
    let inside = 0;
    let turns = 0;
    const loops = managers.map(async (locks) => {
      for (let round = 0; round < 15; round += 1) {
        const lease = await locks.lock('a').acquire({ waitMs: 20_000 });
        inside += 1;
        expect(inside).toBe(1);
        await sleep(2);
        turns += 1;
        inside -= 1;
        await lease.release();
      }
    });
    let over = false;
    const killing = (async () => {
      while (!over) {
        await killAll(admin);
        await sleep(40);
      }
    })();
    await Promise.all(loops).finally(() => {
      over = true;
    });
    await killing;
    expect(turns).toBe(45);
  });

  it('wait_timeout ends idle connections: nobody notices', async () => {
    await using lab = new Lab();
    const server = await lab.server({ args: ['--wait-timeout=1'] });
    const admin = await lab.admin(server);
    await admin.query('SET SESSION wait_timeout = 60');
    const [one, two] = [await lab.locks(server), await lab.locks(server)];
    const lease = await one.lock('a').acquire();
    const mine = async () => rows(admin, "SELECT id FROM information_schema.processlist WHERE user = 'app'");
    await waitUntil(async () => (await mine()).length === 0, { what: 'the server to end what is idle' });
    expect(await two.lock('a').tryAcquire()).toBeUndefined();
    await waitUntil(async () => (await mine()).length === 0, {
      what: 'the server to end what is idle again',
    });
    await lease.renew();
    await waitUntil(async () => (await mine()).length === 0, { what: 'the server to end it once more' });
    await lease.release();
    await (await two.lock('a').acquire()).release();
  });

  it('a pool whose connections are all in use elsewhere: LOCK_BACKEND in time, and all is well afterwards', async () => {
    await using lab = new Lab();
    const server = await lab.server();
    const admin = await lab.admin(server);
    const locks = await lab.locks(server, { ttlMs: 700, pool: { connectionLimit: 1 } });
    const lease = await locks.lock('a').acquire();
    const lost = lossOf(lease);
    // The only connection waits for a row that somebody else's transaction keeps.
    await admin.query('START TRANSACTION');
    await admin.query("SELECT * FROM locks_locks WHERE name = 'warm' FOR UPDATE");
    const stuck = failure(locks.lock('warm').acquire({ waitMs: 2_500 }));
    const startedAt = performance.now();
    const error = await failure(locks.lock('b').acquire({ waitMs: 900 }));
    expect(error.code).toMatch(/^LOCK_(BACKEND|TIMEOUT)$/);
    expect(performance.now() - startedAt).toBeLessThan(2_500);
    expect((await lost).reason).toBe('unconfirmed');
    expect((await stuck).code).toBe('LOCK_BACKEND');
    await admin.query('ROLLBACK');
    const again = await locks.lock('a').acquire({ waitMs: 10_000 });
    expect(again.fencingToken).toBeGreaterThan(lease.fencingToken as bigint);
    await again.release();
  });
});
