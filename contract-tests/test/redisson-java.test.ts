import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { machineNow } from '@locks/core/conformance/process';
import { checkHistory, readHistory } from '@locks/history';
import { type RedisServer, startCluster, startRedis, waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freeze } from '../src/fault-lab/fault-lab.ts';
import { failure } from '../src/fault-lab/observe.ts';
import { SetKeeper } from '../src/lab/kept-set.ts';
import { buildRedisson, redissonWorker } from '../src/lab/peers/redisson.ts';
import RedissonLab from '../src/lab/peers/redisson-lab.ts';
import { RedissonPeer } from '../src/lab/peers/redisson-peer.ts';
import { historyFile, type LabWorkerSetup } from '../src/lab/worker/worker-commands.ts';
import { startWorker } from '../src/lab/worker/worker-process.ts';

const missing = buildRedisson();
if (missing !== undefined) console.warn(`Not run: Java and Node on one lock. ${missing}.`);

/** Of kept locks that end in a test. */
const TTL_MS = 1_000;
/** How much later than its time a hold is found to have ended, on a busy machine. */
const SLACK_MS = 1_000;
/** A process stands still for longer than its hold lasts. */
const STILL_MS = 2 * TTL_MS;
const SECTIONS = 5_000;
const ROUNDS = 60;
const WOKEN_WITHIN_MS = 20;

let redis: RedisServer;
let count = 0;
const fresh = (): string => `name ${++count}`;
const java = (isFenced = false, ttlMs = TTL_MS): Promise<RedissonPeer> =>
  RedissonPeer.start({ addresses: [redis], isCluster: false, isFenced, ttlMs });

describe.skipIf(missing !== undefined)('Java and Node on one lock', { timeout: 180_000 }, () => {
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  it.each([false, true])(
    `2 Java and 2 Node processes never overlap in ${SECTIONS} sections (fenced: %s)`,
    async (isFenced) => {
      const folder = await mkdtemp(join(tmpdir(), 'redisson-'));
      await using keeper = new SetKeeper();
      const options = { ttlMs: 30_000, isFenced };
      const setup: Omit<LabWorkerSetup, 'name'> = {
        ...{ module: new URL('../src/lab/peers/redisson-lab.ts', import.meta.url).href, options },
        ...{ address: { host: redis.host, port: redis.port }, workloads: ['mutex'], folder, holdMs: 1 },
        setAt: await keeper.listen(),
      };
      const names = ['java 1', 'java 2', 'node 1', 'node 2'];
      const workers = await Promise.all(
        names.map((name) =>
          startWorker(
            { ...setup, name },
            {
              program: name.startsWith('java') ? redissonWorker : undefined,
              ...{ network: undefined, proxies: [] },
            },
          ),
        ),
      );
      const history = () => [...readHistory(...names.map((name) => historyFile(folder, 'mutex', name)))];
      try {
        await Promise.all(workers.map(({ call }) => call.start()));
        const grants = () =>
          history().filter(({ type, operation }) => type === 'ok' && operation === 'acquire');
        await waitUntil(() => grants().length >= SECTIONS, {
          ...{ what: `${SECTIONS} sections`, timeoutMs: 120_000, everyMs: 500 },
        });
        await Promise.all(workers.map(({ call }) => call.stop()));
        const granted = grants();
        for (const name of names)
          expect(granted.filter(({ process }) => process === name).length, name).toBeGreaterThan(
            SECTIONS / 20,
          );
        const { operations, violations } = isFenced
          ? checkHistory(history(), 'fenced')
          : checkHistory(history());
        expect(violations).toEqual([]);
        expect(operations).toBeGreaterThanOrEqual(SECTIONS);
        const shares = names.map((name) => `${name} ${granted.filter((one) => one.process === name).length}`);
        console.log(`${granted.length} sections: ${shares.join(', ')}`);
      } finally {
        await Promise.all(workers.map((worker) => worker.kill()));
        await rm(folder, { recursive: true });
      }
    },
  );

  it(`each wakes the other within ${WOKEN_WITHIN_MS} ms, the median of ${ROUNDS}`, async () => {
    await using lab = new RedissonLab();
    await using peer = await java(false, 60_000);
    // No check would be that soon.
    const locks = lab.locks(redis, { ttlMs: 60_000, backend: { maxPollMs: 60_000 } });
    const listening = async (name: string): Promise<void> => {
      const channel = `redisson_lock__channel:{${name}}`;
      const subscribers = async () => ((await redis.command('PUBSUB', 'NUMSUB', channel)) as unknown[])[1];
      await waitUntil(async () => Number(await subscribers()) === 1, { what: 'a waiter that listens' });
    };
    const toJava: number[] = [];
    const toNode: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const [ofNode, ofJava] = [fresh(), fresh()];
      const lease = await locks.lock(ofNode).acquire();
      await peer.begin('waits', ofNode, 20_000);
      await listening(ofNode);
      const releasedAt = machineNow();
      await lease.release();
      toJava.push((await peer.outcome('waits')).at - releasedAt);

      await peer.acquire('holds', ofJava, 0);
      const acquiring = locks
        .lock(ofJava)
        .acquire()
        .then(() => machineNow());
      await listening(ofJava);
      const { at } = await peer.release('holds', ofJava);
      toNode.push((await acquiring) - at);
    }
    console.log(`woken: Java by Node ${figures(toJava)}; Node by Java ${figures(toNode)}`);
    expect(median(toJava)).toBeLessThanOrEqual(WOKEN_WITHIN_MS);
    expect(median(toNode)).toBeLessThanOrEqual(WOKEN_WITHIN_MS);
  });

  it('a hold that Java re-entered ends with its last unlock, and its watchdog keeps it until then', async () => {
    await using lab = new RedissonLab();
    await using peer = await java();
    const locks = lab.locks(redis);
    const name = fresh();
    await peer.acquire('thread', name, 0);
    await peer.acquire('thread', name, 0);
    const acquiring = locks.lock(name).acquire();
    expect((await peer.release('thread', name)).released).toBe(true);
    // Two watchdog intervals, and longer than a lease that nobody renews.
    expect(await failure(locks.lock(name).acquire({ waitMs: TTL_MS + 500 }))).toMatchObject({
      code: 'LOCK_TIMEOUT',
    });
    const [holder] = (await locks.inspect(name)).holders;
    expect(holder?.acquisitionId).toMatch(/^[0-9a-f-]{36}$/);
    expect((await peer.release('thread', name)).released).toBe(true);
    await (await acquiring).release();
  });

  it('a killed holder is followed when its lease is over, in both directions', async () => {
    await using lab = new RedissonLab();
    const locks = lab.locks(redis, { ttlMs: TTL_MS });
    const name = fresh();
    const victim = await java();
    await victim.acquire('thread', name, 0);
    const acquiring = locks.lock(name).acquire();
    await victim.kill();
    const killedAt = performance.now();
    const lease = await acquiring;
    expect(performance.now() - killedAt).toBeLessThan(TTL_MS + SLACK_MS);
    await lease.release();

    await using peer = await java();
    const worker = await lab.worker(redis, { ttlMs: TTL_MS });
    await worker.call.acquire(name);
    await peer.begin('thread', name, 20_000);
    await worker.kill();
    const nodeKilledAt = performance.now();
    expect((await peer.outcome('thread')).granted).toBe(true);
    expect(performance.now() - nodeKilledAt).toBeLessThan(TTL_MS + SLACK_MS);
  });

  it('a holder that stood still has lost, and neither renews nor releases what the other holds', async () => {
    await using lab = new RedissonLab();
    await using peer = await java(true);
    const locks = lab.locks(redis, { ttlMs: TTL_MS, isFenced: true });
    const name = fresh();
    const old = await peer.acquire('thread', name, 0);
    peer.freeze();
    const lease = await locks.lock(name).acquire();
    expect(lease.fencingToken).toBeGreaterThan(BigInt(old.token as string));
    peer.thaw();
    expect(await peer.release('thread', name)).toMatchObject({
      released: false,
      error: expect.stringContaining('IllegalMonitorStateException'),
    });
    await lease.renew();
    await lease.release();

    const worker = await lab.worker(redis, { ttlMs: TTL_MS, isFenced: true });
    const held = await worker.call.acquire(name);
    await freeze(worker);
    const next = await peer.acquire('thread', name, 20_000);
    expect(BigInt(next.token as string)).toBeGreaterThan(BigInt(held.token));
    worker.thaw();
    expect(await worker.call.loss(held.id)).toMatch(/expired|unconfirmed|taken-over/);
    await expect(worker.call.release(held.id)).rejects.toThrow();
    // Its late renewals would have moved the end of Java's hold, or Java would have lost it.
    await new Promise((resolve) => setTimeout(resolve, STILL_MS));
    expect((await peer.release('thread', name)).released).toBe(true);
  });

  it('a lease that nobody renews ends, in both directions', async () => {
    await using lab = new RedissonLab();
    await using peer = await java();
    const locks = lab.locks(redis, { ttlMs: TTL_MS });
    const name = fresh();
    await peer.acquire('thread', name, 0, TTL_MS);
    const lease = await locks.lock(name).acquire({ renewal: 'manual' });
    expect(await peer.release('thread', name)).toMatchObject({ released: false });
    const outcome = await peer.acquire('other', name, 20_000);
    expect(outcome.granted).toBe(true);
    expect(await failure(lease.release())).toMatchObject({ code: 'LOCK_LOST' });
    expect((await peer.release('other', name)).released).toBe(true);
  });

  it('each ends a hold of the other by force, who learns of it', async () => {
    await using lab = new RedissonLab();
    await using peer = await java();
    const locks = lab.locks(redis, { ttlMs: TTL_MS });
    const name = fresh();
    await peer.acquire('thread', name, 0);
    expect(await locks.forceRelease(name)).toHaveLength(1);
    expect(await peer.release('thread', name)).toMatchObject({ released: false });
    const lease = await locks.lock(name).acquire();
    expect(await peer.forceUnlock(name)).toBe(true);
    expect(await failure(lease.renew())).toMatchObject({ code: 'LOCK_LOST', reason: 'force-released' });
  });

  it('in a cluster, both choose sharded channels, and wake each other', async () => {
    await using lab = new RedissonLab();
    const cluster = lab.use(await startCluster({ replicasPerMaster: 0 }));
    await using peer = await RedissonPeer.start({
      addresses: cluster.nodes,
      ...{ isCluster: true, isFenced: true, ttlMs: 60_000 },
    });
    const locks = lab.locks(
      cluster.nodes.map(({ host, port }) => ({ host, port })),
      { ttlMs: 60_000, isFenced: true, backend: { maxPollMs: 60_000 } },
    );
    for (let round = 0; round < 6; round += 1) {
      const name = fresh();
      const lease = await locks.lock(name).acquire();
      await peer.begin('thread', name, 20_000);
      await waitUntil(async () => (await shardChannels(cluster.nodes)).includes(name), {
        what: 'Java to listen',
      });
      await lease.release();
      expect((await peer.outcome('thread')).granted).toBe(true);
      const acquiring = locks.lock(name).acquire();
      await waitUntil(async () => (await shardChannels(cluster.nodes)).includes(name), {
        what: 'Node to listen',
      });
      expect((await peer.release('thread', name)).released).toBe(true);
      const next = await acquiring;
      expect(next.fencingToken).toBe(3n);
      await next.release();
    }
  });
});

async function shardChannels(nodes: readonly RedisServer[]): Promise<string> {
  const channels = await Promise.all(nodes.map((node) => node.command('PUBSUB', 'SHARDCHANNELS')));
  return JSON.stringify(channels);
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] as number;
}

function figures(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => (sorted[Math.floor((sorted.length - 1) * share)] as number).toFixed(1);
  return `median ${at(0.5)} ms, p90 ${at(0.9)} ms, longest ${at(1)} ms`;
}
