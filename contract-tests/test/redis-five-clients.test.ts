import type { LockManager } from '@locks/core';
import { type RedisServer, startRedis, waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import Lab from '../redis-faults/lab.ts';
import { assertNoOverlap, assertTokensRise, together } from '../redis-faults/load-history.ts';
import { failure, untilWaiting } from '../src/fault-lab/observe.ts';
import { libraries, type Library, moreLibraries } from '../src/harnesses/redis/open-client.ts';

/** Far less than the pause between checks: a waiter that enters within it got a message. */
const TOLD_MS = 500;

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});

afterAll(async () => redis.stop());

const five: readonly Library[] = [...libraries, ...moreLibraries];
const pairs = five.flatMap((one) =>
  five.filter((other) => other !== one).map((other) => [one, other] as const),
);

describe('clients of five libraries on one server', { timeout: 60_000 }, () => {
  it.each(pairs)(
    '%s excludes %s, which sees the holder, cannot release its lock, and can release it by force',
    async (one, other) => {
      await using lab = new Lab();
      const name = `exclusion ${one} ${other}`;
      const [holder, stranger] = [
        await lab.locks(redis, { library: one }),
        await lab.locks(redis, { library: other }),
      ];
      const lease = await holder.lock(name).acquire({ label: 'the holder' });
      expect(await stranger.lock(name).tryAcquire()).toBeUndefined();
      expect(await failure(stranger.lock(name).acquire({ waitMs: 50 }))).toMatchObject({
        code: 'LOCK_TIMEOUT',
      });
      const { acquisitionId, fencingToken } = lease;
      expect((await stranger.inspect(name)).holders).toMatchObject([
        { acquisitionId, fencingToken, label: 'the holder' },
      ]);
      expect(await stranger.forceRelease(name)).toMatchObject([{ acquisitionId }]);
      expect(await failure(lease.renew())).toMatchObject({ code: 'LOCK_LOST', reason: 'force-released' });
      const next = await stranger.lock(name).acquire();
      expect(next.fencingToken).toBeGreaterThan(fencingToken as bigint);
      await next.release();
    },
  );

  it.each(pairs)('%s hands off to %s at once', async (one, other) => {
    await using lab = new Lab();
    const name = `hand-off ${one} ${other}`;
    const [holder, waiter] = [
      await lab.locks(redis, { library: one }),
      await lab.locks(redis, { library: other }),
    ];
    const lease = await holder.lock(name).acquire();
    const entered = waiter.lock(name).acquire();
    await untilWaiting(holder, name);
    const releasedAt = performance.now();
    await lease.release();
    const next = await entered;
    expect(performance.now() - releasedAt).toBeLessThan(TOLD_MS);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken as bigint);
    await next.release();
  });

  it('share one queue: thirty waiters of ten clients are served in the order in which they came', async () => {
    await using lab = new Lab();
    const name = 'one queue';
    const clients: LockManager[] = [];
    for (const library of [...five, ...five]) clients.push(await lab.locks(redis, { library }));
    const lease = await (clients[0] as LockManager).lock(name).acquire();
    const served: number[] = [];
    const waits: Promise<void>[] = [];
    for (let position = 0; position < 30; position += 1) {
      const locks = clients[(position * 3) % clients.length] as LockManager;
      waits.push(locks.lock(name).run(() => void served.push(position)));
      await untilWaiting(locks, name, position + 1);
    }
    for (const locks of clients) expect((await locks.inspect(name)).waiters).toHaveLength(30);
    await lease.release();
    await Promise.all(waits);
    expect(served).toEqual(Array.from({ length: 30 }, (_, position) => position));
  });

  it('five processes, each with another library: first come, first served, and never two inside', async () => {
    await using lab = new Lab();
    const name = 'five processes';
    const here = await lab.locks(redis);
    const workers = await Promise.all(five.map((library) => lab.worker(redis, { library })));
    const lease = await here.lock(name).acquire();
    const order = [2, 0, 1, 3, 4, 1, 2, 4, 0, 3, 0, 1, 4, 2, 3];
    const entered: { position: number; token: bigint }[] = [];
    const waits: Promise<void>[] = [];
    for (const [position, index] of order.entries()) {
      const worker = workers[index] as (typeof workers)[number];
      const enter = async () => {
        const { id, token } = await worker.call.acquire(name);
        entered.push({ position, token: BigInt(token) });
        await worker.call.release(id);
      };
      waits.push(enter());
      await waitUntil(async () => (await here.inspect(name)).waiters.length === position + 1, {
        what: `waiter ${position}`,
      });
    }
    await lease.release();
    await Promise.all(waits);
    // The order of the grants is that of their tokens.
    entered.sort((a, b) => (a.token < b.token ? -1 : 1));
    expect(entered.map(({ position }) => position)).toEqual(order.map((_, position) => position));
    const load = { resources: [`${name} under load`], loops: 4, holdMs: 2, waitMs: 10_000 };
    await Promise.all(workers.map((worker) => worker.call.startLoad(load)));
    await waitUntil(async () => (await here.inspect(load.resources[0] as string)).waiters.length > 10, {
      what: 'a queue',
    });
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const { sections, failures, unhandled } = together(
      await Promise.all(workers.map((worker) => worker.call.stopLoad())),
    );
    assertNoOverlap(sections);
    expect({ failures, unhandled }).toEqual({ failures: [], unhandled: [] });
    assertTokensRise(sections);
    // No waiter is granted twice while another waits for its first grant.
    const counts = [...new Set(sections.map(({ who }) => who))].map(
      (one) => sections.filter(({ who }) => who === one).length,
    );
    expect(counts).toHaveLength(20);
    expect(Math.max(...counts) - Math.min(...counts), String(counts)).toBeLessThanOrEqual(3);
  });
});
