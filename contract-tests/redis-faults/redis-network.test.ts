import type { LockManager } from '@locks/core';
import { type Proxy, type ProxyConnection, type RedisServer, waitUntil } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { type Library, libraries } from '../src/redis/open-client.ts';
import { failure, figure, Lab, lossOf, untilListening, untilWaiting, watched } from './lab.ts';

const CLAIM_MS = 2_000;
const CHECK_MS = 1_000;
const SLACK_MS = 700;

const subscriptions = (connection: ProxyConnection): boolean => connection.sawSubscribe;
const isScript = ({ command }: { command: string }): boolean => command === 'EVALSHA';

interface Place {
  readonly redis: RedisServer;
  readonly proxy: Proxy;
  /** Behind the proxy. */
  readonly far: LockManager;
  /** Not behind the proxy. */
  readonly near: LockManager;
}

/** Two clients, of which one speaks through a proxy; both have sent every script they need. */
async function place(lab: Lab, library: Library, ttlMs = 20_000): Promise<Place> {
  const redis = await lab.redis();
  const proxy = await lab.proxy(redis);
  const [far, near] = [
    await lab.locks(library, proxy, { ttlMs }),
    await lab.locks(library, redis, { ttlMs }),
  ];
  await far.lock('warm').run(() => undefined);
  return { redis, proxy, far, near };
}

describe.concurrent.each(libraries)(
  'what happens to the network, with %s',
  { timeout: 40_000 },
  (library) => {
    it('the reply to an acquire is lost with its connection: one hold, with the token that the server gave', async () => {
      await using lab = new Lab();
      const { redis, proxy, far, near } = await place(lab, library);
      proxy.loseReplies(isScript, { times: 1, thenCut: true });
      const lease = await far.lock('a').acquire({ waitMs: 5_000 });
      expect(proxy.lostReplies).toBe(1);
      const { holders } = await near.inspect('a');
      expect(holders).toMatchObject([
        { acquisitionId: lease.acquisitionId, fencingToken: lease.fencingToken },
      ]);
      await lease.release();
      expect(await redis.command('EXISTS', 'lock:a')).toBe(0);
    });

    it('the reply to a tryAcquire is lost with its connection: the lease, or LOCK_BACKEND and nothing left', async () => {
      await using lab = new Lab();
      const { redis, proxy, far } = await place(lab, library);
      proxy.loseReplies(isScript, { times: 1, thenCut: true });
      const attempt = far.lock('a').tryAcquire();
      if (library === 'redis-ioredis') {
        // ioredis sends again what had no answer.
        const lease = await attempt;
        expect(await redis.command('GET', 'lock:a')).toContain(lease?.acquisitionId);
        await lease?.release();
      } else {
        expect(await failure(attempt)).toMatchObject({ code: 'LOCK_BACKEND' });
      }
      expect(proxy.lostReplies).toBe(1);
      await waitUntil(async () => (await redis.command('EXISTS', 'lock:a')) === 0, {
        what: 'no hold',
        timeoutMs: 2_000,
      });
    });

    it('the reply to a release is lost with its connection: no loss is told, and the next holder keeps its lease', async () => {
      await using lab = new Lab();
      const { redis, proxy, far, near } = await place(lab, library);
      const lease = await far.lock('a').acquire();
      const entered = near.lock('a').acquire();
      await untilListening(redis, 'a');
      proxy.loseReplies(isScript, { times: 1, thenCut: true });
      await lease.release();
      expect(proxy.lostReplies).toBe(1);
      const next = await entered;
      // What was sent again found the lock in other hands, and left it there.
      expect(await redis.command('GET', 'lock:a')).toContain(next.acquisitionId);
      next.assertValid();
      await next.renew();
      await next.release();
    });

    it('a release that never gets an answer is LOCK_BACKEND after 1 s; run keeps the value of its work', async () => {
      await using lab = new Lab();
      const { redis, proxy, far } = await place(lab, library);
      const lease = await far.lock('a').acquire();
      proxy.blackhole({ direction: 'toClient' });
      const startedAt = performance.now();
      expect(await failure(lease.release())).toMatchObject({ code: 'LOCK_BACKEND' });
      expect(performance.now() - startedAt).toBeLessThan(1_000 + SLACK_MS);
      expect(lease.signal.aborted).toBe(false);
      expect(await redis.command('EXISTS', 'lock:a')).toBe(0);
      await proxy.heal();
      const value = await far.lock('b').run(async () => {
        proxy.blackhole({ direction: 'toClient' });
        return 'the work is done';
      });
      expect(value).toBe('the work is done');
      await proxy.heal();
    });

    it('latency: two round trips for a pair, and no lease is longer than what was left when its reply came', async () => {
      await using lab = new Lab();
      const ttlMs = 3_000;
      const { proxy, far, near } = await place(lab, library, ttlMs);
      proxy.latency(60);
      const pairs: number[] = [];
      for (let pair = 0; pair < 3; pair += 1) {
        const startedAt = performance.now();
        const lease = await far.lock('a').acquire();
        expect(lease.validForMs).toBeLessThan(ttlMs - 120);
        await lease.release();
        pairs.push(performance.now() - startedAt);
      }
      expect(Math.min(...pairs)).toBeGreaterThan(230);
      expect(Math.min(...pairs)).toBeLessThan(4 * 120 + SLACK_MS);
      // Renewed in time over the slow line, and handed over both ways.
      const slow = await far.lock('a').acquire();
      const entered = near.lock('a').acquire();
      await untilWaiting(near, 'a');
      await new Promise((resolve) => setTimeout(resolve, ttlMs + 200));
      slow.assertValid();
      const back = (async () => {
        const next = await entered;
        const again = far.lock('a').acquire();
        await untilWaiting(near, 'a');
        await next.release();
        return again;
      })();
      await slow.release();
      const again = await back;
      expect(again.validForMs).toBeGreaterThan(0);
      await again.release();
    });

    it("a blackhole of the holder's connection: it is told before anyone else is in", async () => {
      await using lab = new Lab();
      const { proxy, far, near } = await place(lab, library, 1_500);
      const lease = await far.lock('a').acquire();
      const lost = lossOf(lease);
      const entered = near.lock('a').acquire();
      const enteredAt = entered.then(() => performance.now());
      await untilWaiting(near, 'a');
      const startedAt = performance.now();
      proxy.blackhole();
      const { reason, at } = await lost;
      expect(reason).toBe('unconfirmed');
      expect(at - startedAt).toBeLessThan(1_500 + SLACK_MS);
      expect(await enteredAt).toBeGreaterThan(at);
      figure(`${library}, holder in a blackhole: told after`, at - startedAt);
      figure(`${library}, holder in a blackhole: next waiter in after`, (await enteredAt) - startedAt);
      expect(await failure(lease.release())).toMatchObject({ code: 'LOCK_LOST', reason: 'unconfirmed' });
      const next = await entered;
      expect(next.fencingToken).toBeGreaterThan(lease.fencingToken as bigint);
      await next.release();
      await proxy.heal();
    });

    it("a blackhole of the first waiter's connections costs those behind it the claim time and a check", async () => {
      await using lab = new Lab();
      const { redis, proxy, far, near } = await place(lab, library);
      const behind = await lab.locks(library, redis);
      const lease = await near.lock('a').acquire();
      const swallowed = far.lock('a').acquire({ waitMs: 1_500 });
      const gaveUp = failure(swallowed);
      await untilListening(redis, 'a');
      const entered = behind.lock('a').acquire();
      await untilListening(redis, 'a', 2);
      proxy.blackhole();
      await lease.release();
      const releasedAt = performance.now();
      expect((await gaveUp).code).toMatch(/^LOCK_(BACKEND|TIMEOUT)$/);
      const next = await entered;
      const gap = performance.now() - releasedAt;
      figure(`${library}, first waiter in a blackhole: next one in after`, gap);
      expect(gap).toBeGreaterThan(CLAIM_MS - 50);
      expect(gap).toBeLessThan(CLAIM_MS + CHECK_MS + SLACK_MS);
      await proxy.heal();
      await next.release();
      // Nothing that the blackhole swallowed comes back to hold.
      const back = await far.lock('a').acquire({ waitMs: 8_000 });
      expect(back.fencingToken).toBeGreaterThan(next.fencingToken as bigint);
      await back.release();
      expect((await near.inspect('a')).waiters).toEqual([]);
    });

    it('the subscription is cut: listened to again, and a waiter is served at once', async () => {
      await using lab = new Lab();
      const { redis, proxy, far, near } = await place(lab, library);
      const lease = await near.lock('a').acquire();
      const entered = far.lock('a').acquire();
      await untilListening(redis, 'a');
      const before = proxy.connections().find(subscriptions)?.id;
      proxy.cut(subscriptions);
      const renewed = () => proxy.connections().some((each) => subscriptions(each) && each.id !== before);
      await waitUntil(renewed, { what: 'a new subscription' });
      await waitUntil(async () => ((await redis.command('PUBSUB', 'CHANNELS')) as unknown[]).length === 1, {
        what: 'the channel',
      });
      await untilListening(redis, 'a');
      const releasedAt = performance.now();
      await lease.release();
      const next = await entered;
      figure(
        `${library}, hand-off after the subscription was cut and restored`,
        performance.now() - releasedAt,
      );
      expect(performance.now() - releasedAt).toBeLessThan(CHECK_MS / 2);
      await next.release();
    });

    it('the subscription is down at the hand-off: the waiter is passed over, comes back by its check, and is not starved', async () => {
      await using lab = new Lab();
      const { redis, proxy, far, near } = await place(lab, library);
      const lease = await near.lock('a').acquire();
      const entered = watched(far.lock('a').acquire());
      await untilListening(redis, 'a');
      proxy.blackhole({ direction: 'toServer', only: subscriptions });
      proxy.cut(subscriptions);
      await lease.release();
      const releasedAt = performance.now();
      const next = await entered.work;
      figure(`${library}, hand-off while the subscription is down`, performance.now() - releasedAt);
      expect(performance.now() - releasedAt).toBeLessThan(CHECK_MS + SLACK_MS);
      await next.release();
      await proxy.heal();
    });

    it('a subscription that is dead without knowing it does not starve its waiter among others who are told', async () => {
      await using lab = new Lab();
      const { redis, proxy, far, near } = await place(lab, library);
      const busy = [near, await lab.locks(library, redis)];
      await far.lock('warm').run(() =>
        far
          .lock('warm')
          .acquire({ waitMs: 1_000 })
          .catch(() => undefined),
      );
      await waitUntil(() => proxy.connections().some(subscriptions), { what: 'the subscription' });
      // The server ends it, and the end never arrives: a firewall forgot the connection, or a failover left it behind.
      proxy.blackhole({ only: subscriptions });
      await redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
      let stopping = false;
      const loops = [0, 1, 2, 3].map(async (index) => {
        while (!stopping)
          await (busy[index % 2] as LockManager)
            .lock('a')
            .run(() => new Promise((resolve) => setTimeout(resolve, 5)));
      });
      await untilWaiting(near, 'a', 3);
      const startedAt = performance.now();
      const entered = far.lock('a').acquire({ waitMs: 8_000 });
      try {
        const lease = await entered;
        figure(
          `${library}, a subscription that is dead without knowing it: in after`,
          performance.now() - startedAt,
        );
        await lease.release();
      } finally {
        stopping = true;
        await Promise.all(loops);
        await proxy.heal();
      }
    });
  },
);
