import { describe, expect, it } from 'vitest';
import { failure, figure, Lab, later, lossOf, untilWaiting } from './lab.ts';

const SLACK_MS = 1_500;
/** A silent process is passed over after 3 s, at the next look of another one. */
const SILENCE_MS = 3_000;
const LOOK_MS = 900;

describe.concurrent('what happens to the network', { timeout: 40_000 }, () => {
  it('connections cut under holder and waiter: both go on', async () => {
    await using lab = new Lab();
    const server = await lab.mariadb();
    const proxy = await lab.proxy(server);
    const [near, far] = [await lab.locks(server), await lab.locks(proxy, { ttlMs: 3_000 })];
    const lease = await far.lock('a').acquire();
    const waiting = later(near.lock('a').acquire());
    await untilWaiting(near, 'a');
    for (let round = 0; round < 4; round += 1) {
      proxy.cut();
      await lease.renew();
    }
    proxy.cut();
    await lease.release();
    const next = await waiting;
    const back = later(far.lock('a').acquire());
    await untilWaiting(near, 'a');
    proxy.cut();
    await next.release();
    const last = await back;
    expect(last.fencingToken).toBeGreaterThan(next.fencingToken as bigint);
    proxy.cut();
    // A single attempt too: it finds a closed connection and takes another.
    expect(await far.lock('b').tryAcquire()).toBeDefined();
    await last.release();
  });

  it('a blackhole under the holder: it is told before anyone else is in', async () => {
    await using lab = new Lab();
    const server = await lab.mariadb();
    const proxy = await lab.proxy(server);
    const [near, far] = [await lab.locks(server), await lab.locks(proxy, { ttlMs: 1_200 })];
    const lease = await far.lock('a').acquire();
    const lost = lossOf(lease);
    const entered = near
      .lock('a')
      .acquire()
      .then((next) => ({ next, at: performance.now() }));
    await untilWaiting(near, 'a');
    const startedAt = performance.now();
    proxy.blackhole();
    const { reason, at } = await lost;
    expect(reason).toBe('unconfirmed');
    const { next, at: enteredAt } = await entered;
    expect(enteredAt).toBeGreaterThan(at);
    figure('holder in a blackhole (ttl 1200): told after', at - startedAt);
    figure('holder in a blackhole (ttl 1200): next one in after', enteredAt - startedAt);
    expect(enteredAt - startedAt).toBeLessThan(1_200 + SLACK_MS);
    expect(await failure(lease.release())).toMatchObject({ code: 'LOCK_LOST', reason: 'unconfirmed' });
    await next.release();
    await proxy.heal();
    const back = await far.lock('a').acquire({ waitMs: 8_000 });
    expect(back.fencingToken).toBeGreaterThan(next.fencingToken as bigint);
    await back.release();
  });

  it('a blackhole under the first waiter: LOCK_BACKEND or LOCK_TIMEOUT in time, and the next is in after its silence', async () => {
    await using lab = new Lab();
    const server = await lab.mariadb();
    const proxy = await lab.proxy(server);
    const [near, far] = [await lab.locks(server), await lab.locks(proxy)];
    const behind = await lab.locks(server);
    const lease = await near.lock('a').acquire();
    const swallowed = failure(far.lock('a').acquire({ waitMs: 2_000 }));
    await untilWaiting(near, 'a');
    const entered = later(behind.lock('a').acquire({ waitMs: 20_000 }));
    await untilWaiting(near, 'a', 2);
    proxy.blackhole();
    const cutAt = performance.now();
    await lease.release();
    expect((await swallowed).code).toMatch(/^LOCK_(BACKEND|TIMEOUT)$/);
    expect(performance.now() - cutAt).toBeLessThan(2_000 + SLACK_MS);
    const next = await entered;
    figure('first waiter dead: next one in after', performance.now() - cutAt);
    expect(performance.now() - cutAt).toBeLessThan(SILENCE_MS + LOOK_MS + SLACK_MS);
    await proxy.heal();
    await next.release();
    const back = await far.lock('a').acquire({ waitMs: 8_000 });
    expect(back.fencingToken).toBeGreaterThan(next.fencingToken as bigint);
    await back.release();
    expect((await near.inspect('a')).waiters).toEqual([]);
  });

  it('a dead writer in the queue holds back readers for its silence, not for the readers before it', async () => {
    await using lab = new Lab();
    const server = await lab.mariadb();
    const proxy = await lab.proxy(server);
    const [near, far] = [await lab.locks(server), await lab.locks(proxy)];
    const reading = await near.readWriteLock('a').read.acquire();
    const writing = failure(far.readWriteLock('a').write.acquire({ waitMs: 1_000 }));
    await untilWaiting(near, 'a');
    proxy.blackhole();
    const cutAt = performance.now();
    const second = await near.readWriteLock('a').read.acquire({ waitMs: 15_000 });
    figure('dead writer before a reader: in after', performance.now() - cutAt);
    expect(performance.now() - cutAt).toBeLessThan(SILENCE_MS + LOOK_MS + SLACK_MS);
    reading.assertValid();
    expect((await writing).code).toMatch(/^LOCK_(BACKEND|TIMEOUT)$/);
    await proxy.heal();
    await Promise.all([reading.release(), second.release()]);
  });

  it('a release that never gets an answer is LOCK_BACKEND after 1 s; run keeps the value of its work', async () => {
    await using lab = new Lab();
    const server = await lab.mariadb();
    const proxy = await lab.proxy(server);
    const [near, far] = [await lab.locks(server), await lab.locks(proxy, { ttlMs: 20_000 })];
    const lease = await far.lock('a').acquire();
    proxy.blackhole({ direction: 'toClient' });
    const startedAt = performance.now();
    expect(await failure(lease.release())).toMatchObject({ code: 'LOCK_BACKEND' });
    expect(performance.now() - startedAt).toBeLessThan(1_000 + SLACK_MS);
    // The server got it.
    await (await near.lock('a').acquire()).release();
    await proxy.heal();
    const value = await far.lock('b').run(
      async () => {
        proxy.blackhole({ direction: 'toClient' });
        return 'the work is done';
      },
      { waitMs: 10_000 },
    );
    expect(value).toBe('the work is done');
    await proxy.heal();
  });

  it('the reply to an acquire is lost with its connection: one hold, with the token that the server gave', async () => {
    await using lab = new Lab();
    const server = await lab.mariadb();
    const proxy = await lab.proxy(server);
    const [near, far] = [await lab.locks(server), await lab.locks(proxy)];
    proxy.blackhole({ direction: 'toClient' });
    const acquired = later(far.lock('a').acquire({ waitMs: 20_000 }));
    const holders = async () => (await near.inspect('a')).holders;
    while ((await holders()).length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const [holder] = await holders();
    proxy.cut();
    await proxy.heal();
    const lease = await acquired;
    expect(lease).toMatchObject({
      acquisitionId: holder?.acquisitionId,
      fencingToken: holder?.fencingToken,
    });
    await lease.release();
    expect(await holders()).toEqual([]);
  });
});
