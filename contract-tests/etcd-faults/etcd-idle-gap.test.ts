import { describe, expect, it } from 'vitest';
import { figure, Lab, untilWaiting } from './lab.ts';

/** The server looks for ended leases twice a second, and counts in whole seconds. */
const EXPIRY_MS = 1_500;
const WAITER_TTL_MS = 3_000;
const SLACK_MS = 1_500;

describe.concurrent('the idle gap', { timeout: 40_000 }, () => {
  it('after the death of a holder is its ttl and a moment', async () => {
    await using lab = new Lab();
    const etcd = await lab.etcd();
    const holder = await lab.worker({ hosts: etcd.url, name: 'a', ttlMs: 2_000 });
    await holder.granted;
    const grantedAt = performance.now();
    const waiter = lab.locks(etcd.url);
    const entered = waiter.lock('a').acquire({ waitMs: 20_000 });
    await untilWaiting(waiter, 'a');
    await holder.kill();
    const killedAt = performance.now();
    const lease = await entered;
    figure('a killed holder, after its lease or later', performance.now() - grantedAt - 2_000);
    expect(performance.now() - killedAt).toBeLessThan(2_000 + EXPIRY_MS + SLACK_MS);
    await lease.release();
  });

  it.each(['killed', 'frozen'] as const)(
    'after the next in line was %s is the ttl of its place',
    async (how) => {
      await using lab = new Lab();
      const etcd = await lab.etcd();
      const [holder, last] = [lab.locks(etcd.url), lab.locks(etcd.url)];
      const lease = await holder.lock('a').acquire();
      const next = await lab.worker({ hosts: etcd.url, name: 'a', ttlMs: 30_000 });
      await untilWaiting(holder, 'a', 1);
      const entered = last.lock('a').acquire({ waitMs: 30_000 });
      await untilWaiting(holder, 'a', 2);
      if (how === 'killed') await next.kill();
      else next.freeze();
      const releasedAt = performance.now();
      await lease.release();
      const after = await entered;
      figure(`the next in line ${how}`, performance.now() - releasedAt);
      expect(performance.now() - releasedAt).toBeLessThan(WAITER_TTL_MS + EXPIRY_MS + SLACK_MS);
      if (how === 'frozen') {
        // It finds its place gone, and waits again, behind.
        next.thaw();
        await untilWaiting(holder, 'a', 1);
        after.assertValid();
        await after.release();
        await next.granted;
      } else {
        await after.release();
      }
    },
  );
});
