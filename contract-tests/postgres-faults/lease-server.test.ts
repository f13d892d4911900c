import { describe, expect, it } from 'vitest';
import { failure, LeaseLab, lossOf, SLACK_MS, untilWaiting } from './lease-lab.ts';

describe.concurrent('what happens to the server of a lease table', { timeout: 40_000 }, () => {
  it('killed and started again: leases go on, and who waits is served in order', async () => {
    await using lab = new LeaseLab();
    const server = await lab.server();
    const [holder, waiters] = [lab.locks(server, { ttlMs: 8_000 }), lab.locks(server, { ttlMs: 8_000 })];
    const lease = await holder.lock('a').acquire();
    const order: number[] = [];
    const tokens: bigint[] = [];
    const waits: Promise<void>[] = [];
    for (let place = 0; place < 5; place += 1) {
      waits.push(
        waiters.lock('a').run(
          ({ fencingToken }) => {
            order.push(place);
            tokens.push(fencingToken as bigint);
          },
          { waitMs: 20_000 },
        ),
      );
      await untilWaiting(holder, 'a', place + 1);
    }
    await server.restart();
    await lease.renew();
    expect(lease.signal.aborted).toBe(false);
    await lease.release();
    await Promise.all(waits);
    expect(order).toEqual([0, 1, 2, 3, 4]);
    const all = [lease.fencingToken as bigint, ...tokens];
    expect(all.every((token, at) => at === 0 || token > (all[at - 1] as bigint))).toBe(true);
  });

  it('killed and away for longer than the ttl: told as lost before anyone else is in', async () => {
    await using lab = new LeaseLab();
    const server = await lab.server();
    const [holder, waiter] = [lab.locks(server, { ttlMs: 1_500 }), lab.locks(server, { ttlMs: 1_500 })];
    const lease = await holder.lock('a').acquire();
    const lost = lossOf(lease);
    const entered = waiter
      .lock('a')
      .acquire({ waitMs: 20_000 })
      .then((next) => ({ next, at: performance.now() }));
    await untilWaiting(holder, 'a');
    await server.kill();
    const { at: toldAt, reason } = await lost;
    expect(reason).toBe('unconfirmed');
    await server.restart();
    const { next, at } = await entered;
    expect(at).toBeGreaterThan(toldAt);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken as bigint);
    await next.release();
  });

  it('standing still for longer than the ttl: told as lost before anyone else is in', async () => {
    await using lab = new LeaseLab();
    const server = await lab.server();
    const [holder, waiter] = [lab.locks(server, { ttlMs: 1_500 }), lab.locks(server, { ttlMs: 1_500 })];
    const lease = await holder.lock('a').acquire();
    const lost = lossOf(lease);
    const entered = waiter
      .lock('a')
      .acquire({ waitMs: 20_000 })
      .then((next) => ({ next, at: performance.now() }));
    await untilWaiting(holder, 'a');
    await server.pause();
    const { at: toldAt } = await lost;
    await server.resume();
    const { next, at } = await entered;
    expect(at).toBeGreaterThan(toldAt);
    next.assertValid();
    await next.release();
    await waiter.lock('a').run(() => undefined);
  });

  it.each(['killed', 'standing still'])('%s for longer than waitMs: LOCK_BACKEND in time', async (state) => {
    await using lab = new LeaseLab();
    const server = await lab.server();
    const [holder, waiter] = [lab.locks(server, { ttlMs: 20_000 }), lab.locks(server, { ttlMs: 20_000 })];
    await holder.lock('a').acquire();
    const startedAt = performance.now();
    const failed = failure(waiter.lock('a').acquire({ waitMs: 4_500 }));
    await untilWaiting(holder, 'a');
    if (state === 'killed') await server.kill();
    else await server.pause();
    expect(await failed).toMatchObject({ code: 'LOCK_BACKEND' });
    expect(performance.now() - startedAt).toBeLessThan(4_500 + SLACK_MS);
    // A new one learns of it at once, or as soon as it stops waiting.
    expect(await failure(waiter.lock('b').acquire({ waitMs: 500 }))).toMatchObject({ code: 'LOCK_BACKEND' });
    if (state === 'killed') await server.restart();
    else await server.resume();
    await waiter.lock('b').run(() => undefined, { waitMs: 10_000 });
  });
});
