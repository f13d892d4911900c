import type { LockManager } from '@locks/core';
import { type RedisServer, startRedis, waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { assertNoOverlap, assertTokensRise, together } from '../redis-faults/judge.ts';
import { failure, Lab, untilWaiting } from '../redis-faults/lab.ts';
import { libraries, type Library } from '../src/redis/open-client.ts';

/** Far less than a check: whoever enters within it was told. */
const TOLD_MS = 500;

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});

afterAll(async () => redis.stop());

describe('ioredis and node-redis on one server', { timeout: 30_000 }, () => {
  const pairs: [Library, Library][] = [
    ['redis-ioredis', 'redis-node'],
    ['redis-node', 'redis-ioredis'],
  ];

  it.each(pairs)(
    '%s excludes %s, which sees who holds, cannot release it, and may do so by force',
    async (one, other) => {
      await using lab = new Lab();
      const name = `exclusion ${one}`;
      const [holder, stranger] = [await lab.locks(one, redis), await lab.locks(other, redis)];
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

  it.each(pairs)('%s hands over to %s at once', async (one, other) => {
    await using lab = new Lab();
    const name = `hand-off ${one}`;
    const [holder, waiter] = [await lab.locks(one, redis), await lab.locks(other, redis)];
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

  it('both share one queue: twelve waiters of four clients are served in the order in which they came', async () => {
    await using lab = new Lab();
    const name = 'one queue';
    const clients: LockManager[] = [];
    for (const library of [...libraries, ...libraries]) clients.push(await lab.locks(library, redis));
    const lease = await (clients[0] as LockManager).lock(name).acquire();
    const served: number[] = [];
    const waits: Promise<void>[] = [];
    for (let place = 0; place < 12; place += 1) {
      const locks = clients[(place * 3) % clients.length] as LockManager;
      waits.push(locks.lock(name).run(() => void served.push(place)));
      await untilWaiting(locks, name, place + 1);
    }
    const { waiters } = await (clients[1] as LockManager).inspect(name);
    expect(waiters).toHaveLength(12);
    await lease.release();
    await Promise.all(waits);
    expect(served).toEqual(Array.from({ length: 12 }, (_, place) => place));
  });

  it('three mixed processes: first come, first served, and never two inside', async () => {
    await using lab = new Lab();
    const name = 'three processes';
    const here = await lab.locks('redis-ioredis', redis);
    const mixed: Library[] = ['redis-ioredis', 'redis-node', 'redis-ioredis'];
    const workers = await Promise.all(mixed.map((library) => lab.worker(library, redis)));
    const lease = await here.lock(name).acquire();
    const order = [2, 0, 1, 1, 2, 0, 0, 1, 2];
    const entered: { place: number; token: bigint }[] = [];
    const waits: Promise<void>[] = [];
    for (const [place, index] of order.entries()) {
      const worker = workers[index] as (typeof workers)[number];
      const stay = async () => {
        const { id, token } = await worker.acquire(name);
        entered.push({ place, token: BigInt(token) });
        await worker.release(id);
      };
      waits.push(stay());
      await waitUntil(async () => (await here.inspect(name)).waiters.length === place + 1, {
        what: `waiter ${place}`,
      });
    }
    await lease.release();
    await Promise.all(waits);
    // By the tokens, which the server gives in the order of its grants.
    entered.sort((a, b) => (a.token < b.token ? -1 : 1));
    expect(entered.map(({ place }) => place)).toEqual(order.map((_, place) => place));
    const load = { resources: [`${name} under load`], loops: 4, holdMs: 2, waitMs: 10_000 };
    await Promise.all(workers.map((worker) => worker.startLoad(load)));
    await waitUntil(async () => (await here.inspect(load.resources[0] as string)).waiters.length > 6, {
      what: 'a queue',
    });
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const { stays, failures, unhandled } = together(
      await Promise.all(workers.map((worker) => worker.stopLoad())),
    );
    assertNoOverlap(stays);
    expect({ failures, unhandled }).toEqual({ failures: [], unhandled: [] });
    assertTokensRise(stays);
    // In turn: nobody gets a second stay while another waits for its first.
    const counts = [...new Set(stays.map(({ who }) => who))].map(
      (one) => stays.filter(({ who }) => who === one).length,
    );
    expect(counts).toHaveLength(12);
    expect(Math.max(...counts) - Math.min(...counts), String(counts)).toBeLessThanOrEqual(3);
  });
});
