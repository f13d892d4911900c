/** What goes wrong with redlock 5.0.0-beta.2, by the numbers of its issues, does not go wrong here. */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { startCluster, startProxy, startRedis, waitUntil } from '@locks/test-servers';
import { ExecutionError, Redlock } from '@locks/redlock-compat';
import { Cluster, Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Deployment, failureOf } from './deployments.ts';

const ONCE = { retryCount: 0 };
const HOUR = 3_600_000;

let deployment: Deployment;
let redlock: Redlock;
let other: Redlock;
beforeAll(async () => {
  deployment = await Deployment.start(1);
  redlock = new Redlock(deployment.clients);
  other = new Redlock(deployment.clients);
});
afterAll(() => deployment?.[Symbol.asyncDispose]());

/** Until nothing has the lock any more, as its holder or in the store. */
const over = (lock: { readonly expiration: number }): Promise<unknown> =>
  waitUntil(() => lock.expiration === 0, { what: 'the lock to end' });

/** The event loop stands still. */
function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

describe('#296, #299: acquire() gives a lock that is over', () => {
  it('never does: an answer that takes longer than the lock lasts is no success', async () => {
    await using server = await startRedis();
    const proxy = await startProxy(server);
    const client = new Redis(proxy.port, '127.0.0.1');
    try {
      const slow = new Redlock([client], ONCE);
      await slow.acquire(['warm'], 1_000);
      proxy.latency(400);
      const error = await failureOf(slow.acquire(['a'], 300));
      expect(error).toBeInstanceOf(ExecutionError);
    } finally {
      client.disconnect();
      await proxy.stop();
    }
  });
});

describe('#168, #309, #313: the release of a lock that is over', () => {
  it('rejects at once, and says why', async () => {
    const lock = await redlock.acquire(['b'], 100);
    await over(lock);
    const startedAt = performance.now();
    const error = await failureOf(lock.release());
    expect(error).toBeInstanceOf(ExecutionError);
    expect(error.cause).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    // redlock tries eleven times, for two seconds.
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });

  it('does not hide what the routine of using() threw', async () => {
    const thrown = new Error('of the routine');
    const using = redlock.using(['b2'], 100, async () => {
      block(300);
      throw thrown;
    });
    expect(await failureOf(using)).toBe(thrown);
  });

  it('makes using() reject where the routine succeeded: it worked without the lock', async () => {
    const using = redlock.using(['b3'], 100, async () => block(300));
    const error = await failureOf(using);
    expect(error).toBeInstanceOf(ExecutionError);
    expect(error.cause).toMatchObject({ code: 'LOCK_LOST' });
  });
});

describe('#103: extend() ends the lock object that it extends', () => {
  it('moves the end of the same object: the old variable may be used', async () => {
    const lock = await redlock.acquire(['c'], 5_000);
    expect(await lock.extend(HOUR)).toBe(lock);
    expect(lock.expiration).toBeGreaterThan(Date.now() + HOUR / 2);
    await lock.extend(HOUR);
    await lock.release();
  });
});

describe('#288: plain contention reads as a missing quorum', () => {
  it('says who holds the resource, and has a code', async () => {
    const lock = await redlock.acquire(['d'], HOUR);
    const error = await failureOf(other.acquire(['d'], HOUR, { retryCount: 1 }));
    // Without the name of the holder where a busy store does not answer in time.
    expect(error.message).toMatch(/^Gave up on "d" after \d+ ms: (held by|it was contended)/);
    expect(error.cause).toMatchObject({ code: 'LOCK_TIMEOUT', lockName: 'd' });
    const own = await failureOf(redlock.acquire(['d'], HOUR, { retryCount: 1 }));
    for (const { message } of [own, own.cause as Error]) {
      expect(message).toMatch(
        /Another call of this process holds it: wait for longer, or hold it for less\./,
      );
      expect(message).not.toContain('within');
    }
    const several = await failureOf(other.acquire(['d', 'd2'], HOUR, ONCE));
    expect(several.message).toContain('is locked by somebody else');
    await lock.release();
  });
});

describe('#86: a waiting acquire() cannot be cancelled', () => {
  it.each([[['e']], [['e', 'e2']]])('of %j is, by a signal, and holds nothing', async (resources) => {
    const lock = await redlock.acquire(['e'], HOUR);
    const abort = new AbortController();
    const waiting = failureOf(other.acquire(resources, HOUR, { retryCount: -1, signal: abort.signal }));
    await sleep(50);
    const reason = new Error('not needed any more');
    abort.abort(reason);
    expect(await waiting).toBe(reason);
    await lock.release();
    await (await redlock.acquire(['e', 'e2'], HOUR)).release();
  });
});

describe('#218: who waits longest starves', () => {
  it('one resource is handed on in the order in which it was asked for', async () => {
    const lock = await redlock.acquire(['f'], HOUR);
    const order: number[] = [];
    const waiting: Promise<unknown>[] = [];
    for (const index of [0, 1, 2, 3]) {
      const use = async (): Promise<void> => void order.push(index);
      waiting.push((index % 2 ? redlock : other).using(['f'], 10_000, { retryCount: -1 }, use));
      await sleep(50);
    }
    await lock.release();
    await Promise.all(waiting);
    expect(order).toEqual([0, 1, 2, 3]);
  });
});

describe('#64: several resources on a Cluster must lie in one slot', () => {
  it('they may lie in any', async () => {
    const cluster = await startCluster();
    const client = new Cluster(cluster.nodes.map(({ host, port }) => ({ host, port })));
    try {
      const onCluster = new Redlock([client]);
      const lock = await onCluster.acquire(['a', 'b', 'c', 'd'], HOUR);
      await expect(onCluster.acquire(['d', 'e'], HOUR, ONCE)).rejects.toBeInstanceOf(ExecutionError);
      await lock.extend(HOUR);
      await lock.release();
      await (await onCluster.acquire(['d', 'e'], HOUR)).release();
    } finally {
      client.disconnect();
      await cluster.stop();
    }
  });
});

describe('an event loop that stood still for longer than the lock lasts', () => {
  it('is seen at once: the signal is aborted, and extend() refuses', async () => {
    const seen = await failureOf(
      redlock.using(['g'], 150, async (signal) => {
        expect(signal.aborted).toBe(false);
        block(400);
        // No timer has run since.
        expect(signal.aborted).toBe(true);
        throw signal.error ?? new Error('the signal has no error');
      }),
    );
    expect(seen).toBeInstanceOf(ExecutionError);

    const lock = await redlock.acquire(['g2'], 150);
    block(400);
    expect(lock.expiration).toBe(0);
    expect((await failureOf(lock.extend(HOUR))).cause).toMatchObject({ code: 'LOCK_LOST' });
  });
});

describe('one extension that fails', () => {
  it('does not end using(): it is tried again until the lock is over', async () => {
    await using server = await startRedis();
    const proxy = await startProxy(server);
    const client = new Redis(proxy.port, '127.0.0.1');
    client.on('error', () => {});
    try {
      const held = new Redlock([client]).using(['h'], 6_000, async (signal) => {
        await sleep(500);
        // The renewal after 2 s gets no answer.
        proxy.blackhole();
        await sleep(2_500);
        await proxy.heal();
        await sleep(5_000);
        return signal.aborted;
      });
      expect(await held).toBe(false);
    } finally {
      client.disconnect();
      await proxy.stop();
    }
  });
});

describe('two using() on the same resources in opposite order', () => {
  it('both end', async () => {
    const settings = { retryCount: -1 };
    const routine = (): Promise<void> => sleep(20);
    const rounds = Array.from({ length: 5 }, () => [
      redlock.using(['i1', 'i2'], HOUR, settings, routine),
      other.using(['i2', 'i1'], HOUR, settings, routine),
    ]);
    await Promise.all(rounds.flat());
  });
});

describe('a client that fails', () => {
  it('of three: the lock is got all the same, and the error is emitted', async () => {
    await using three = await Deployment.start(3);
    const errors: Error[] = [];
    const quorum = new Redlock(three.clients);
    quorum.on('error', (error: Error) => errors.push(error));
    await three.servers[2]?.stop();
    const lock = await quorum.acquire(['j'], 30_000);
    const [stats] = await Promise.all(lock.attempts);
    expect(stats?.votesFor.size).toBe(2);
    await lock.release();
    // The client of the server that is away goes on trying, longer than a call waits for it.
    await waitUntil(() => errors.length > 0, { what: 'an error to be emitted', timeoutMs: 30_000 });
    expect(stats?.votesAgainst.get(three.clients[2] as Redis)).toBeInstanceOf(Error);
  });

  it('of one: the error of the client is the vote', async () => {
    await using one = await Deployment.start(1);
    const alone = new Redlock(one.clients, { retryCount: 2 });
    await alone.acquire(['warm'], 1_000);
    await one.servers[0]?.stop();
    const error = (await failureOf(alone.acquire(['k'], 30_000))) as ExecutionError;
    expect(error).toBeInstanceOf(ExecutionError);
    expect(error.cause).toMatchObject({ code: expect.stringMatching(/^LOCK_(BACKEND|TIMEOUT)$/) });
  });
});
