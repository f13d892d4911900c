import { waitUntil } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { failure, figure, lossOf, untilWaiting } from '../src/fault-lab/observe.ts';
import Lab, { keyOf } from './lab.ts';

/** A message, on a busy machine. A renewal of these leases would come after 10 s. */
const MESSAGE_MS = 2_000;

describe.concurrent('what an administrator does', { timeout: 40_000 }, () => {
  it.each(['key', 'lease'] as const)(
    'a %s deleted by hand is reported by a message, and the next one is let in',
    async (what) => {
      await using lab = new Lab();
      const etcd = await lab.server();
      const [holder, waiter, admin] = [lab.locks(etcd), lab.locks(etcd), lab.admin(etcd.url)];
      const lease = await holder.lock('a').acquire();
      const lost = lossOf(lease);
      const entered = waiter.lock('a').acquire();
      await untilWaiting(holder, 'a');
      const { kvs } = await admin.getAll().prefix('locks//a/').exec();
      const held = kvs.find(({ value }) => value.toString().startsWith('re'));
      const endedAt = performance.now();
      if (what === 'key') await admin.delete().key(held?.key as Buffer);
      else await admin.leaseClient.leaseRevoke({ ID: held?.lease as string });
      const { reason, at } = await lost;
      figure(`a ${what} deleted by hand: reported after`, at - endedAt);
      expect(at - endedAt).toBeLessThan(MESSAGE_MS);
      expect(['force-released', 'taken-over']).toContain(reason);
      expect(await failure(lease.release())).toMatchObject({ code: 'LOCK_LOST' });
      const next = await entered;
      expect(next.fencingToken).toBeGreaterThan(lease.fencingToken as bigint);
      await next.release();
    },
  );

  it('a key deleted by hand right after the grant, before it was watched, is reported as well', async () => {
    await using lab = new Lab();
    const etcd = await lab.server();
    const [holder, admin] = [lab.locks(etcd), lab.admin(etcd.url)];
    await (await holder.lock('a').acquire()).release();
    const lease = await holder.lock('a').acquire();
    const lost = lossOf(lease);
    await admin.delete().all();
    const endedAt = performance.now();
    const { reason, at } = await lost;
    expect(at - endedAt).toBeLessThan(MESSAGE_MS);
    expect(reason).toBe('force-released');
  });

  it('a compaction while a waiter is cut off loses neither its position nor its wake-up', async () => {
    await using lab = new Lab();
    const etcd = await lab.server();
    const proxy = await lab.proxy(etcd);
    const [holder, admin] = [lab.locks(etcd), lab.admin(etcd.url)];
    const waiter = lab.locks(proxy, { backend: { waiterTtlMs: 10_000 } });
    const lease = await holder.lock('a').acquire();
    const entered = waiter.lock('a').acquire({ waitMs: 30_000 });
    await untilWaiting(holder, 'a');
    proxy.refuse();
    proxy.cut();
    await lease.release();
    // Its watch begins anew before this revision: the server no longer knows what happened since.
    await admin.put('other').value('1');
    const { header } = await admin.put('other').value('2');
    await admin.kv.compact({ revision: header.revision, physical: true });
    await proxy.heal();
    const healedAt = performance.now();
    const next = await entered;
    figure('a waiter after a compaction, from the end of its cut', performance.now() - healedAt);
    expect(performance.now() - healedAt).toBeLessThan(6_000);
    await next.release();
  });

  it('a compaction while a holder is cut off hides no loss, and makes none up', async () => {
    await using lab = new Lab();
    const etcd = await lab.server();
    const proxy = await lab.proxy(etcd);
    const admin = lab.admin(etcd.url);
    const holder = lab.locks(proxy, { ttlMs: 60_000 });
    const [kept, taken] = await Promise.all([holder.lock('kept').acquire(), holder.lock('taken').acquire()]);
    const lost = lossOf(taken);
    const watchers = async (): Promise<number> => {
      const metrics = await (await fetch(`${etcd.url}/metrics`)).text();
      return Number(/^etcd_debugging_mvcc_watcher_total (\d+)/m.exec(metrics)?.[1]);
    };
    await waitUntil(async () => (await watchers()) === 2, { what: 'both to be watched' });
    proxy.refuse();
    proxy.cut();
    await admin.delete().key((await keyOf(admin, 'taken')).key);
    const { header } = await admin.put('other').value('1');
    await admin.kv.compact({ revision: header.revision, physical: true });
    await proxy.heal();
    const healedAt = performance.now();
    expect((await lost).reason).toBe('force-released');
    expect((await lost).at - healedAt).toBeLessThan(6_000);
    kept.assertValid();
    expect(await kept.release()).toBeUndefined();
  });

  it('no ghost is left by an acquire whose answers were all lost', async () => {
    await using lab = new Lab();
    const etcd = await lab.server();
    const proxy = await lab.proxy(etcd);
    const [cutOff, other] = [lab.locks(proxy), lab.locks(etcd)];
    // Its lease is put aside: the one request that follows grants the lock.
    await (await cutOff.lock('warm').acquire()).release();
    proxy.blackhole({ direction: 'toClient' });
    const failed = failure(cutOff.lock('a').acquire({ waitMs: 700, ttlMs: 30_000 }));
    await waitUntil(async () => (await other.inspect('a')).holders.length === 1, {
      what: 'a hold that nobody knows of',
    });
    expect(await failed).toMatchObject({ code: 'LOCK_BACKEND' });
    await proxy.heal();
    const healedAt = performance.now();
    const lease = await other.lock('a').acquire({ waitMs: 35_000 });
    figure('a hold whose grant was lost, from the end of the cut', performance.now() - healedAt);
    expect(performance.now() - healedAt).toBeLessThan(31_000);
    await lease.release();
  });
});
