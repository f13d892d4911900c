import { describe, expect, it } from 'vitest';
import { failure, later, lossOf, untilWaiting } from '../src/fault-lab/observe.ts';
import Lab from './lab.ts';

describe.concurrent('what happens to the server', { timeout: 40_000 }, () => {
  it('read-only: LOCK_BACKEND with its words, a waiter outlasts it, and all goes on afterwards', async () => {
    await using lab = new Lab();
    const server = await lab.server();
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
    // Nothing was taken away; the loss of a lease that could not be renewed is reported in time.
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
});
