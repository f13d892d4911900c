import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { figure, untilWaiting } from '../src/fault-lab/observe.ts';
import Lab from './lab.ts';

describe.concurrent('what happens to the server and the network', { timeout: 40_000 }, () => {
  it('away for longer than the sessions of waiters last: they keep their positions, then and afterwards', async () => {
    await using lab = new Lab();
    const etcd = await lab.server();
    const admin = lab.admin(etcd.url);
    const backend = { waiterTtlMs: 1_000, requestTimeoutMs: 1_000 };
    const [holder, waiter] = [lab.locks(etcd, { ttlMs: 20_000 }), lab.locks(etcd, { backend })];
    const lease = await holder.lock('a').acquire();
    const entered = waiter.lock('a').acquire({ waitMs: 30_000 });
    await untilWaiting(holder, 'a');
    const positions = async () =>
      (await admin.getAll().prefix('locks//a/').exec()).kvs.map((kv) => kv.create_revision).toSorted();
    const before = await positions();
    await etcd.kill();
    await delay(3_000);
    await etcd.restart();
    await untilWaiting(holder, 'a');
    // A session that nobody renews any more would end meanwhile.
    await delay(3_000);
    expect(await positions()).toEqual(before);
    await lease.release();
    await (await entered).release();
  });

  it('a waiter whose watch alone is silent is woken by its own check', async () => {
    await using lab = new Lab();
    const etcd = await lab.server();
    const proxy = await lab.proxy(etcd);
    const holder = lab.locks(etcd);
    const waiter = lab.locks(proxy);
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
