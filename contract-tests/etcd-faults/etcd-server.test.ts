import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { failure, figure, Lab, lossOf, untilWaiting } from './lab.ts';

/** What a busy machine may add. */
const SLACK_MS = 1_500;

describe.concurrent('what happens to the server and the network', { timeout: 40_000 }, () => {
  it('killed and restarted in the middle of a hold and a wait: the lease lives on, the waiter keeps its place', async () => {
    await using lab = new Lab();
    const etcd = await lab.etcd();
    const [holder, first, second] = [
      lab.locks(etcd.url, { ttlMs: 10_000 }),
      lab.locks(etcd.url),
      lab.locks(etcd.url),
    ];
    const lease = await holder.lock('a').acquire();
    const order: string[] = [];
    const entered = [
      first
        .lock('a')
        .acquire({ waitMs: 30_000 })
        .then(async (next) => {
          order.push('first');
          await next.release();
          return next.fencingToken as bigint;
        }),
    ];
    await untilWaiting(holder, 'a', 1);
    entered.push(
      second
        .lock('a')
        .acquire({ waitMs: 30_000 })
        .then(async (next) => {
          order.push('second');
          await next.release();
          return next.fencingToken as bigint;
        }),
    );
    await untilWaiting(holder, 'a', 2);
    await etcd.kill();
    await etcd.restart();
    await lease.renew();
    lease.assertValid();
    expect(order).toEqual([]);
    await lease.release();
    const tokens = await Promise.all(entered);
    expect(order).toEqual(['first', 'second']);
    expect(tokens[0]).toBeGreaterThan(lease.fencingToken as bigint);
    expect(tokens[1]).toBeGreaterThan(tokens[0] as bigint);
  });

  it('away for longer than the sessions of waiters last: they keep their places, then and afterwards', async () => {
    await using lab = new Lab();
    const etcd = await lab.etcd();
    const admin = lab.admin(etcd.url);
    const backend = { waiterTtlMs: 1_000, callTimeoutMs: 1_000 };
    const [holder, waiter] = [lab.locks(etcd.url, { ttlMs: 20_000 }), lab.locks(etcd.url, { backend })];
    const lease = await holder.lock('a').acquire();
    const entered = waiter.lock('a').acquire({ waitMs: 30_000 });
    await untilWaiting(holder, 'a');
    const places = async () =>
      (await admin.getAll().prefix('locks/a/').exec()).kvs.map((kv) => kv.create_revision).toSorted();
    const before = await places();
    await etcd.kill();
    await delay(3_000);
    await etcd.restart();
    await untilWaiting(holder, 'a');
    // A session that nobody renews any more would end meanwhile.
    await delay(3_000);
    expect(await places()).toEqual(before);
    await lease.release();
    await (await entered).release();
  });

  it('stopped for longer than the ttl: the loss is told by time, before the waiter can enter', async () => {
    await using lab = new Lab();
    const etcd = await lab.etcd();
    const [holder, waiter] = [lab.locks(etcd.url, { ttlMs: 2_000 }), lab.locks(etcd.url)];
    const lease = await holder.lock('a').acquire();
    const lost = lossOf(lease);
    const entered = waiter
      .lock('a')
      .acquire({ waitMs: 30_000 })
      .then((next) => ({ next, at: performance.now() }));
    await untilWaiting(holder, 'a');
    await etcd.pause();
    const pausedAt = performance.now();
    const { reason, at } = await lost;
    expect(reason).toBe('unconfirmed');
    expect(at - pausedAt).toBeLessThan(2_000 + SLACK_MS);
    etcd.resume();
    const resumedAt = performance.now();
    const { next, at: enteredAt } = await entered;
    expect(enteredAt).toBeGreaterThan(at);
    figure('a waiter after the server went on', enteredAt - resumedAt);
    await next.release();
  });

  it.each(['cut', 'blackholed'] as const)(
    'a holder whose connection is %s is told before the next one holds',
    async (how) => {
      await using lab = new Lab();
      const etcd = await lab.etcd();
      const proxy = await lab.proxy(etcd);
      const holder = lab.locks(proxy.url.replace('redis', 'http'), { ttlMs: 4_000 });
      const waiter = lab.locks(etcd.url);
      const lease = await holder.lock('a').acquire();
      const lost = lossOf(lease);
      const entered = waiter
        .lock('a')
        .acquire({ waitMs: 20_000 })
        .then((next) => ({ next, at: performance.now() }));
      await untilWaiting(waiter, 'a');
      if (how === 'cut') {
        proxy.refuse();
        proxy.cut();
      } else {
        proxy.blackhole();
      }
      const cutAt = performance.now();
      const { reason, at } = await lost;
      const { next, at: enteredAt } = await entered;
      expect(reason).toBe('unconfirmed');
      expect(enteredAt).toBeGreaterThan(at);
      figure(`the next one after a holder was ${how}`, enteredAt - cutAt);
      await next.release();
      await proxy.heal();
      const again = await holder.lock('a').acquire({ waitMs: 15_000 });
      expect(again.fencingToken).toBeGreaterThan(next.fencingToken as bigint);
      await again.release();
    },
  );

  it.each(['cut', 'blackholed'] as const)(
    'a waiter whose connection is %s fails in time, or gets in when it is back',
    async (how) => {
      await using lab = new Lab();
      const etcd = await lab.etcd();
      const proxy = await lab.proxy(etcd);
      const holder = lab.locks(etcd.url, { ttlMs: 30_000 });
      const backend = { callTimeoutMs: 1_000 };
      const waiter = lab.locks(proxy.url.replace('redis', 'http'), { backend });
      const lease = await holder.lock('a').acquire();
      const gaveUp = failure(waiter.lock('a').acquire({ waitMs: 6_000 }));
      const startedAt = performance.now();
      await untilWaiting(holder, 'a');
      const patient = waiter.lock('a').acquire({ waitMs: 30_000 });
      await untilWaiting(holder, 'a', 2);
      if (how === 'cut') {
        proxy.refuse();
        proxy.cut();
      } else {
        proxy.blackhole();
      }
      expect((await gaveUp).code).toMatch(/^LOCK_(?:BACKEND|TIMEOUT)$/);
      expect(performance.now() - startedAt).toBeLessThan(6_000 + SLACK_MS);
      await lease.release();
      await proxy.heal();
      const healedAt = performance.now();
      const next = await patient;
      figure(`a waiter that was ${how}, from the end of it`, performance.now() - healedAt);
      expect(performance.now() - healedAt).toBeLessThan(10_000);
      await next.release();
    },
  );

  it('a waiter whose watch alone is silent is woken by its own look', async () => {
    await using lab = new Lab();
    const etcd = await lab.etcd();
    const proxy = await lab.proxy(etcd);
    const holder = lab.locks(etcd.url);
    const waiter = lab.locks(proxy.url.replace('redis', 'http'));
    const lease = await holder.lock('a').acquire();
    const entered = waiter.lock('a').acquire({ waitMs: 30_000 });
    await untilWaiting(holder, 'a');
    // All connections that are open now go silent towards the client; new ones work.
    const silent = new Set(proxy.connections());
    proxy.blackhole({ direction: 'toClient', only: (connection) => silent.has(connection) });
    await lease.release();
    const releasedAt = performance.now();
    const next = await entered;
    figure('a waiter whose connections all went silent', performance.now() - releasedAt);
    expect(performance.now() - releasedAt).toBeLessThan(20_000);
    await next.release();
  });
});
