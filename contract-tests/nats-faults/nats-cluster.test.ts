import { describe, expect, it } from 'vitest';
import { figure, later, untilWaiting } from '../src/fault-lab/observe.ts';
import Lab from './lab.ts';

const STREAM = 'KV_locks';

describe.concurrent('a cluster of three', { timeout: 90_000 }, () => {
  it.each([
    ['killed', (server: { kill(): Promise<void> }) => server.kill()],
    ['standing still', (server: { pause(): Promise<void> }) => server.pause()],
  ] as const)(
    'goes on when its leader is %s: the lease is renewed, the waiter gets its turn',
    async (how, stop) => {
      await using lab = new Lab();
      const cluster = await lab.cluster();
      const [holder, waiter] = await Promise.all(
        [0, 1].map(() => lab.locks(cluster.urls, { ttlMs: 20_000 })),
      );
      if (holder === undefined || waiter === undefined) throw new Error('no locks');
      await holder.lock('warm').run(() => undefined, { waitMs: 10_000 });
      const lease = await holder.lock('a').acquire();
      const entered = later(waiter.lock('a').acquire({ waitMs: 60_000 }));
      await untilWaiting(holder, 'a');
      const leader = await cluster.leader(STREAM);
      const stoppedAt = performance.now();
      await stop(leader);
      await cluster.waitForNewLeader(STREAM, leader);
      figure(`nats, leader ${how}: another one after`, performance.now() - stoppedAt);
      await lease.renew();
      lease.assertValid();
      await lease.release();
      const next = await entered;
      expect(next.fencingToken).toBeGreaterThan(lease.fencingToken as bigint);
      figure(`nats, leader ${how}: next one in after`, performance.now() - stoppedAt);
      await next.release();
    },
  );
});
