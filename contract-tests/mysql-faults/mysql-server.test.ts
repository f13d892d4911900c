import { describe, expect, it } from 'vitest';
import { failure, figure, Lab, later, lossOf, sleep, untilWaiting } from './lab.ts';

const SLACK_MS = 1_500;

describe.concurrent('what happens to the server', { timeout: 40_000 }, () => {
  it('read-only: LOCK_BACKEND with its words, a waiter outlasts it, and all goes on afterwards', async () => {
    await using lab = new Lab();
    const server = await lab.mariadb();
    const admin = await lab.admin(server);
    const [one, two] = [await lab.locks(server, { ttlMs: 20_000 }), await lab.locks(server)];
    const lease = await one.lock('a').acquire();
    const short = await one.lock('short').acquire({ ttlMs: 900 });
    const lost = lossOf(short);
    const waiting = later(two.lock('a').acquire({ waitMs: 20_000 }));
    await untilWaiting(one, 'a');
    await admin.query('SET GLOBAL read_only = 1');
    const refused = await failure(two.lock('b').tryAcquire());
    expect(refused).toMatchObject({ code: 'LOCK_BACKEND', cause: { errno: 1290 } });
    expect((refused.cause as Error).message).toMatch(/read-only/);
    expect(await failure(two.lock('b').acquire({ waitMs: 300 }))).toMatchObject({ code: 'LOCK_BACKEND' });
    // Nothing was taken away; a lease that could not be renewed is told in time.
    expect((await lost).reason).toBe('unconfirmed');
    lease.assertValid();
    expect((await two.inspect('a')).holders).toHaveLength(1);
    expect(await failure(lease.release())).toMatchObject({ code: 'LOCK_BACKEND' });
    await admin.query('SET GLOBAL read_only = 0');
    // That release gave up without an answer: the hold ends by an operator here, by its ttl otherwise.
    await two.forceRelease('a');
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken as bigint);
    await next.release();
    await (await two.lock('b').acquire()).release();
  });

  it('killed and restarted mid-hold and mid-wait: the lease goes on, the waiter gets it, tokens rise', async () => {
    await using lab = new Lab();
    const server = await lab.mariadb();
    const [one, two] = [await lab.locks(server, { ttlMs: 8_000 }), await lab.locks(server)];
    const lease = await one.lock('a').acquire();
    const waiting = later(two.lock('a').acquire({ waitMs: 30_000 }));
    await untilWaiting(one, 'a');
    await server.restart();
    await lease.renew();
    await untilWaiting(one, 'a');
    await lease.release();
    const releasedAt = performance.now();
    const next = await waiting;
    figure('hand-off after a restart of the server', performance.now() - releasedAt);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken as bigint);
    await next.release();
    await server.restart();
    const after = await one.lock('a').acquire();
    expect(after.fencingToken).toBeGreaterThan(next.fencingToken as bigint);
    await after.release();
  });

  it('killed for longer than the ttl: the holder is told before anyone else is in', async () => {
    await using lab = new Lab();
    const server = await lab.mariadb();
    const [one, two] = [await lab.locks(server, { ttlMs: 800 }), await lab.locks(server, { ttlMs: 800 })];
    const lease = await one.lock('a').acquire();
    const lost = lossOf(lease);
    const waiting = two
      .lock('a')
      .acquire({ waitMs: 30_000 })
      .then((next) => ({ next, at: performance.now() }));
    await untilWaiting(one, 'a');
    await server.kill();
    const { reason, at } = await lost;
    expect(reason).toBe('unconfirmed');
    await sleep(400);
    await server.restart();
    const { next, at: enteredAt } = await waiting;
    expect(enteredAt).toBeGreaterThan(at);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken as bigint);
    await next.release();
  });

  it('SIGSTOP for longer than the ttl: told in time, LOCK_BACKEND in time, one holder afterwards', async () => {
    await using lab = new Lab();
    const server = await lab.mariadb();
    const [one, two] = [await lab.locks(server, { ttlMs: 900 }), await lab.locks(server, { ttlMs: 900 })];
    const lease = await one.lock('a').acquire();
    const lost = lossOf(lease);
    const patient = two
      .lock('a')
      .acquire({ waitMs: 30_000 })
      .then((next) => ({ next, at: performance.now() }));
    await untilWaiting(one, 'a');
    const startedAt = performance.now();
    await server.pause();
    const hasty = await failure(two.lock('b').acquire({ waitMs: 500 }));
    expect(hasty.code).toBe('LOCK_BACKEND');
    const { reason, at } = await lost;
    expect(reason).toBe('unconfirmed');
    expect(at - startedAt).toBeLessThan(900 + SLACK_MS);
    await sleep(1_000);
    server.resume();
    const { next, at: enteredAt } = await patient;
    expect(enteredAt).toBeGreaterThan(at);
    next.assertValid();
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken as bigint);
    await next.release();
    // What reached the server after the call had given up does not stay.
    const free = await two.lock('b').acquire({ waitMs: 5_000 });
    await free.release();
  });
});
