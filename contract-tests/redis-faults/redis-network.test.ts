import type { LockManager } from '@locks/core';
import { type RedisProxy, type RedisProxyConnection, type RedisServer, waitUntil } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { libraries } from '../src/harnesses/redis/open-client.ts';
import { failure, figure, untilWaiting, watched } from '../src/fault-lab/observe.ts';
import Lab, { untilListening } from './lab.ts';

const CHECK_MS = 1_000;
const SLACK_MS = 700;

const subscriptions = (connection: RedisProxyConnection): boolean => connection.sawSubscribe;
const isScript = ({ command }: { command: string }): boolean => command === 'EVALSHA';

interface NetworkSetup {
  readonly redis: RedisServer;
  readonly proxy: RedisProxy;
  /** Behind the proxy. */
  readonly far: LockManager;
  /** Not behind the proxy. */
  readonly near: LockManager;
}

/** Two clients, of which one speaks through a proxy; both have sent every script they need. */
async function setUp(lab: Lab, ttlMs = 20_000): Promise<NetworkSetup> {
  const redis = await lab.server();
  const proxy = await lab.proxy(redis);
  const [far, near] = [await lab.locks(proxy, { ttlMs }), await lab.locks(redis, { ttlMs })];
  await far.lock('warm').run(() => undefined);
  return { redis, proxy, far, near };
}

describe.concurrent.each(libraries)(
  'what happens to the network, with %s',
  { timeout: 40_000 },
  (library) => {
    it('the reply to a tryAcquire is lost with its connection: the lease, or LOCK_BACKEND and nothing left', async () => {
      await using lab = new Lab(library);
      const { redis, proxy, far } = await setUp(lab);
      proxy.loseReplies(isScript, { times: 1, thenCut: true });
      const attempt = far.lock('a').tryAcquire();
      if (library === 'redis-ioredis') {
        // ioredis sends again what had no answer.
        const lease = await attempt;
        expect(await redis.command('GET', 'lock::a')).toContain(lease?.acquisitionId);
        await lease?.release();
      } else {
        expect(await failure(attempt)).toMatchObject({ code: 'LOCK_BACKEND' });
      }
      expect(proxy.lostReplies).toBe(1);
      await waitUntil(async () => (await redis.command('EXISTS', 'lock::a')) === 0, {
        what: 'no hold',
        timeoutMs: 2_000,
      });
    });

    it('latency: two round trips for a pair, and no lease is longer than what was left when its reply came', async () => {
      await using lab = new Lab(library);
      const ttlMs = 3_000;
      const { proxy, far, near } = await setUp(lab, ttlMs);
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
      // Renewed in time over the slow line, and handed off both ways.
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

    it('the subscription is cut: listened to again, and a waiter is served at once', async () => {
      await using lab = new Lab(library);
      const { redis, proxy, far, near } = await setUp(lab);
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
      await using lab = new Lab(library);
      const { redis, proxy, far, near } = await setUp(lab);
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

    it('a subscription that is dead without knowing it does not starve its waiter among others that listen', async () => {
      await using lab = new Lab(library);
      const { redis, proxy, far, near } = await setUp(lab);
      const busy = [near, await lab.locks(redis)];
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
