import { setTimeout as sleep } from 'node:timers/promises';
import { type RedisCluster, type RedisServer, slotOf, startCluster, waitUntil } from '@locks/test-servers';
import { createLocks, type LockManager } from '@locks/core';
import { redisBackend as glideBackend } from '@locks/redis-glide';
import { redisBackend as ioredisBackend } from '@locks/redis-ioredis';
import { redisBackend as nodeRedisBackend } from '@locks/redis-node';
import { GlideClusterClient } from '@valkey/valkey-glide';
import { Cluster } from 'ioredis';
import { createCluster } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { figure, grantOf } from '../src/fault-lab/observe.ts';
import type { RedisAddress } from '../src/harnesses/redis/address.ts';
import { libraries, type Library } from '../src/harnesses/redis/open-client.ts';
import Lab from './lab.ts';

const TTL_MS = 30_000;
/** No check comes before the end of a test: what arrives within {@link TOLD_MS} came by a message. */
const SELDOM = { backend: { maxPollMs: 60_000 }, ttlMs: TTL_MS };
const TOLD_MS = 900;
const UNREPLICATED_MS = 300;

let cluster: RedisCluster;
let address: RedisAddress;

const slotOfLock = (name: string): number => slotOf(`lock::${name}`);
const ownerOf = (name: string): Promise<RedisServer> => cluster.slotOwner(slotOfLock(name));

/** Names of locks of one master, each in a slot of its own. */
async function namesAt(master: RedisServer, tag: string, count: number): Promise<string[]> {
  const view = (await cluster.topology()).find(({ server }) => server === master);
  const owns = (slot: number) => view?.slots.some(([from, to]) => slot >= from && slot <= to) ?? false;
  const names = new Map<number, string>();
  for (let tried = 0; names.size < count; tried += 1) {
    const name = `${tag} ${tried}`;
    if (owns(slotOfLock(name))) names.set(slotOfLock(name), name);
  }
  return [...names.values()];
}

async function masters(): Promise<RedisServer[]> {
  const views = await cluster.topology();
  return views.filter(({ role, failed }) => role === 'master' && !failed).map(({ server }) => server);
}

async function anotherMaster(than: RedisServer): Promise<RedisServer> {
  return (await masters()).find((server) => server !== than) as RedisServer;
}

/** The `notify` of each waiter of a lock. */
async function notifies(name: string): Promise<string[]> {
  const owner = await ownerOf(name);
  const members = (await owner.command('ZRANGEBYSCORE', `{lock::${name}}:q`, 0, '+inf')) as string[];
  return members.map((member) => member.split('|')[2] as string);
}

/** The channels of the waiters of a lock, once all of them are at the lock's own master and each has a listener there. */
async function untilListening(name: string, count = 1): Promise<string[]> {
  const listening = async () => {
    const owner = await ownerOf(name);
    const channels = (await notifies(name)).map((notify) => notify.slice(1));
    const heard = (await owner.command('PUBSUB', 'SHARDNUMSUB', ...channels)) as (string | number)[];
    return channels.length === count && channels.every((_, at) => heard[2 * at + 1] === 1)
      ? channels
      : undefined;
  };
  return waitUntil(() => listening().catch(() => undefined), {
    what: `${count} waiters of ${name} that listen at its master`,
    timeoutMs: 15_000,
    everyMs: 10,
  });
}

async function untilNotify(name: string, mode: string, count = 1): Promise<void> {
  const joined = async () => {
    const all = await notifies(name);
    return all.length === count && all.every((notify) => notify.startsWith(mode));
  };
  await waitUntil(joined, { what: `${count} waiters of ${name} with ${mode}`, everyMs: 10 });
}

/** Messages between nodes so far, to all and within a shard. */
async function busMessages(): Promise<{ toAll: number; inShard: number }> {
  const infos = await Promise.all(
    cluster.nodes.filter(({ running }) => running).map((node) => node.command('CLUSTER', 'INFO')),
  );
  const sum = (field: string) =>
    infos.reduce<number>(
      (total, info) => total + Number(new RegExp(`${field}:(\\d+)`).exec(String(info))?.[1] ?? 0),
      0,
    );
  return { toAll: sum('messages_publish_sent'), inShard: sum('messages_publishshard_sent') };
}

async function connectionsForMessages(): Promise<number> {
  const lists = await Promise.all(
    cluster.nodes
      .filter(({ running }) => running)
      .map((node) => node.command('CLIENT', 'LIST', 'TYPE', 'pubsub')),
  );
  return lists.map((list) => String(list).split('\n').filter(Boolean).length).reduce((a, b) => a + b, 0);
}

async function allNodes(...command: [string, ...string[]]): Promise<void> {
  await Promise.all(cluster.nodes.map((node) => node.command(...command)));
}

/** Locks of a client that logs in. */
async function asLocker(lab: Lab, library: Library): Promise<LockManager> {
  const login = { username: 'locker', password: 'secret' };
  if (library === 'redis-ioredis') {
    const client = new Cluster(cluster.roots, { redisOptions: login });
    lab.defer(() => client.disconnect());
    return lab.use(createLocks(ioredisBackend(client, SELDOM.backend), { ttlMs: TTL_MS, waitMs: 20_000 }));
  }
  if (library === 'redis-glide') {
    const client = await GlideClusterClient.createClient({
      addresses: [...cluster.roots],
      credentials: login,
    });
    lab.defer(() => client.close());
    return lab.use(createLocks(glideBackend(client, SELDOM.backend), { ttlMs: TTL_MS, waitMs: 20_000 }));
  }
  const client = createCluster({ rootNodes: cluster.roots.map((socket) => ({ socket })), defaults: login });
  await client.connect();
  lab.defer(() => client.destroy());
  return lab.use(createLocks(nodeRedisBackend(client, SELDOM.backend), { ttlMs: TTL_MS, waitMs: 20_000 }));
}

/** Releases, and gives how long the next one took to get in. */
async function handOffMs(
  lease: { release(): Promise<unknown> },
  entered: ReturnType<typeof grantOf>,
): Promise<number> {
  const releasedAt = performance.now();
  await lease.release();
  const { lease: next, at } = await entered;
  await next.release();
  return at - releasedAt;
}

/** Lets a client wait for a lock of a master whose channel it has opened for another lock, `before`, in another slot. */
async function waitOnOpenChannel(master: RedisServer, holder: LockManager, waiter: LockManager, tag: string) {
  const [before, name] = (await namesAt(master, tag, 2)) as [string, string];
  const other = await holder.lock(before).acquire();
  const opened = grantOf(waiter.lock(before).acquire());
  await untilListening(before);
  await handOffMs(other, opened);
  const lease = await holder.lock(name).acquire();
  const entered = grantOf(waiter.lock(name).acquire());
  return { before, name, lease, entered, channels: await untilListening(name) };
}

describe.each([...libraries, 'redis-glide'] as const)(
  'sharded channels, with %s',
  { timeout: 60_000 },
  (library) => {
    beforeAll(async () => {
      cluster = await startCluster({ nodeTimeoutMs: 1_000 });
      address = { kind: 'cluster', roots: cluster.roots };
    }, 60_000);

    afterAll(async () => cluster.stop());

    it('a hand-off costs a message within the shard, and none to the other nodes', async () => {
      await using lab = new Lab(library);
      const [holder, waiter] = [await lab.locks(address, SELDOM), await lab.locks(address, SELDOM)];
      const name = `told ${library}`;
      const lease = await holder.lock(name).acquire();
      const entered = grantOf(waiter.lock(name).acquire());
      await untilListening(name);
      const before = await busMessages();
      expect(await handOffMs(lease, entered)).toBeLessThan(TOLD_MS);
      const after = await busMessages();
      expect({ toAll: after.toAll - before.toAll, inShard: after.inShard - before.inShard }).toEqual({
        toAll: 0,
        inShard: cluster.replicasPerMaster,
      });
    });

    it('all locks of a master share one channel, and the later waiters join with it', async () => {
      await using lab = new Lab(library);
      const [holder, waiter] = [await lab.locks(address, SELDOM), await lab.locks(address, SELDOM)];
      const names = await namesAt((await masters())[0] as RedisServer, `one channel ${library}`, 3);
      const channels = new Set<string>();
      for (const name of names) {
        const lease = await holder.lock(name).acquire();
        const entered = grantOf(waiter.lock(name).acquire());
        for (const channel of await untilListening(name)) channels.add(channel);
        expect(await handOffMs(lease, entered)).toBeLessThan(TOLD_MS);
      }
      expect(channels.size).toBe(1);
      expect(await connectionsForMessages()).toBe(1);
    });

    it('a killed next-in-line is passed over at once', async () => {
      await using lab = new Lab(library);
      const name = `killed next ${library}`;
      const [holder, last] = [await lab.locks(address, SELDOM), await lab.locks(address, SELDOM)];
      const next = await lab.worker(address, SELDOM);
      const lease = await holder.lock(name).acquire();
      next.call.acquire(name).catch(() => undefined);
      await untilListening(name);
      const entered = grantOf(last.lock(name).acquire());
      await untilListening(name, 2);
      await next.kill();
      await waitUntil(async () => (await connectionsForMessages()) === 1, { what: 'the server to notice' });
      const tookMs = await handOffMs(lease, entered);
      figure(`${library} on a cluster, next in the queue killed`, tookMs);
      expect(tookMs).toBeLessThan(TOLD_MS);
    });

    it("after the slot of a lock and of its waiter's channel went to another master", async () => {
      await using lab = new Lab(library);
      const [holder, waiter] = [await lab.locks(address, SELDOM), await lab.locks(address, SELDOM)];
      const name = `moved lock ${library}`;
      const lease = await holder.lock(name).acquire();
      const entered = grantOf(waiter.lock(name).acquire());
      const [channel] = await untilListening(name);
      // The channel goes along: its name has the slot of the lock that it was opened for.
      await cluster.migrateSlot(slotOfLock(name), await anotherMaster(await ownerOf(name)));
      expect(await untilListening(name)).toEqual([channel]);
      expect(await handOffMs(lease, entered)).toBeLessThan(TOLD_MS);
    });

    it("while a lock's slot is at another master than the channel of its waiter", async () => {
      await using lab = new Lab(library);
      const [holder, waiter] = [await lab.locks(address, SELDOM), await lab.locks(address, SELDOM)];
      const source = (await masters())[0] as RedisServer;
      const { name, lease, entered, channels } = await waitOnOpenChannel(
        source,
        holder,
        waiter,
        `apart ${library}`,
      );
      await cluster.migrateSlot(slotOfLock(name), await anotherMaster(source));
      // Its process has not noticed: it listens at the former master.
      expect((await notifies(name)).map((notify) => notify.slice(1))).toEqual(channels);
      expect(await handOffMs(lease, entered)).toBeLessThan(TOLD_MS);
    });

    it("a check moves waiters to a channel of the master that has the lock's slot now", async () => {
      await using lab = new Lab(library);
      const options = { ttlMs: TTL_MS };
      const [holder, waiter] = [await lab.locks(address, SELDOM), await lab.locks(address, options)];
      const source = (await masters())[0] as RedisServer;
      const { name, lease, entered, channels } = await waitOnOpenChannel(
        source,
        holder,
        waiter,
        `follows ${library}`,
      );
      await cluster.migrateSlot(slotOfLock(name), await anotherMaster(source));
      expect(await untilListening(name)).not.toEqual(channels);
      expect(await notifies(name)).toHaveLength(1);
      expect(await handOffMs(lease, entered)).toBeLessThan(TOLD_MS);
    });

    it("after the channel's slot went to another master, which the server says at once", async () => {
      await using lab = new Lab(library);
      const [holder, waiter] = [await lab.locks(address, SELDOM), await lab.locks(address, SELDOM)];
      const source = (await masters())[0] as RedisServer;
      const { before, name, lease, entered, channels } = await waitOnOpenChannel(
        source,
        holder,
        waiter,
        `moved channel ${library}`,
      );
      expect(channels.map(slotOf)).toEqual([slotOfLock(before)]);
      await cluster.migrateSlot(slotOfLock(before), await anotherMaster(source));
      expect(await untilListening(name)).not.toEqual(channels);
      // Not twice: the waiter of the former channel is gone.
      expect(await notifies(name)).toHaveLength(1);
      expect(await handOffMs(lease, entered)).toBeLessThan(TOLD_MS);
    });

    it('after the connection for messages was killed', async () => {
      await using lab = new Lab(library);
      const [holder, waiter] = [await lab.locks(address, SELDOM), await lab.locks(address, SELDOM)];
      const name = `killed connection ${library}`;
      const lease = await holder.lock(name).acquire();
      const entered = grantOf(waiter.lock(name).acquire());
      const [channel] = await untilListening(name);
      const owner = await ownerOf(name);
      await owner.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
      expect(await untilListening(name)).toEqual([channel]);
      expect(await handOffMs(lease, entered)).toBeLessThan(TOLD_MS);
      expect(await connectionsForMessages()).toBe(1);
    });

    it('a waiter that gives up leaves nothing in the queue, whatever channel it had', async () => {
      await using lab = new Lab(library);
      const [holder, waiter] = [await lab.locks(address, SELDOM), await lab.locks(address, SELDOM)];
      const name = `gives up ${library}`;
      await holder.lock(name).acquire();
      const abort = new AbortController();
      const given = expect(waiter.lock(name).acquire({ signal: abort.signal })).rejects.toThrow();
      await untilListening(name);
      abort.abort();
      await given;
      await waitUntil(async () => (await notifies(name)).length === 0, { what: 'an empty queue' });
    });

    it('without the right to SSUBSCRIBE waiters listen to a plain channel', async () => {
      await using lab = new Lab(library);
      const [holder, waiter] = [await lab.locks(address, SELDOM), await lab.locks(address, SELDOM)];
      const name = `no right to listen ${library}`;
      const lease = await holder.lock(name).acquire();
      await allNodes('ACL', 'SETUSER', 'default', '-ssubscribe');
      lab.defer(() => allNodes('ACL', 'SETUSER', 'default', '+@all'));
      const entered = grantOf(waiter.lock(name).acquire());
      await untilNotify(name, '~');
      expect(await handOffMs(lease, entered)).toBeLessThan(TOLD_MS);
    });

    it('without the right to SSUBSCRIBE a killed next-in-line costs its ttl: nobody counts the listeners', async () => {
      await using lab = new Lab(library);
      await allNodes('ACL', 'SETUSER', 'default', '-ssubscribe');
      lab.defer(() => allNodes('ACL', 'SETUSER', 'default', '+@all'));
      const name = `killed next, plain ${library}`;
      const [holder, last] = [await lab.locks(address), await lab.locks(address)];
      const next = await lab.worker(address, { ttlMs: 1_500 });
      const lease = await holder.lock(name).acquire();
      next.call.acquire(name).catch(() => undefined);
      await untilNotify(name, '~');
      const entered = grantOf(last.lock(name).acquire());
      await untilNotify(name, '~', 2);
      await next.kill();
      const tookMs = await handOffMs(lease, entered);
      figure(`${library} on a cluster without sharded channels, next in the queue killed`, tookMs);
      expect(tookMs).toBeLessThan(1_500 + TOLD_MS);
    });

    it('without the right to SPUBLISH a hand-off is published to all nodes', async () => {
      await using lab = new Lab(library);
      const [holder, waiter] = [await lab.locks(address, SELDOM), await lab.locks(address, SELDOM)];
      const name = `no right to publish ${library}`;
      const lease = await holder.lock(name).acquire();
      await allNodes('ACL', 'SETUSER', 'default', '-spublish');
      lab.defer(() => allNodes('ACL', 'SETUSER', 'default', '+@all'));
      const entered = grantOf(waiter.lock(name).acquire());
      await untilListening(name);
      expect(await handOffMs(lease, entered)).toBeLessThan(TOLD_MS);
    });

    it("logs in as the client's user does", async () => {
      await using lab = new Lab(library);
      await allNodes('ACL', 'SETUSER', 'locker', 'reset', 'on', '>secret', '~*', '&lock:ch:*', '+@all');
      // Whoever is not logged in may not listen so.
      await allNodes('ACL', 'SETUSER', 'default', '-ssubscribe');
      lab.defer(() => allNodes('ACL', 'SETUSER', 'default', '+@all'));
      const [holder, waiter] = [await asLocker(lab, library), await asLocker(lab, library)];
      const name = `user ${library}`;
      const lease = await holder.lock(name).acquire();
      const entered = grantOf(waiter.lock(name).acquire());
      await untilListening(name);
      expect(await handOffMs(lease, entered)).toBeLessThan(TOLD_MS);
    });

    it('close ends the connections to all masters', async () => {
      await using lab = new Lab(library);
      const [holder, waiter] = [await lab.locks(address, SELDOM), await lab.locks(address, SELDOM)];
      const all = await masters();
      expect(await connectionsForMessages()).toBe(0);
      for (const [at, master] of all.entries()) {
        const [name] = (await namesAt(master, `closed ${library}`, 1)) as [string];
        const lease = await holder.lock(name).acquire();
        const entered = grantOf(waiter.lock(name).acquire());
        await untilListening(name);
        await handOffMs(lease, entered);
        expect(await connectionsForMessages()).toBe(at + 1);
      }
      await waiter.close();
      await waitUntil(async () => (await connectionsForMessages()) === 0, { what: 'no connection' });
    });

    it.each(['a failover that was asked for', 'a failover after a kill'])('after %s', async (kind) => {
      await using lab = new Lab(library);
      const options = { ttlMs: TTL_MS };
      const [holder, waiter] = [await lab.locks(address, options), await lab.locks(address, options)];
      const name = `${kind} ${library}`;
      const lease = await holder.lock(name).acquire();
      const entered = grantOf(waiter.lock(name).acquire());
      await untilListening(name);
      const old = await ownerOf(name);
      const [replica] = (await cluster.replicasOf(old)) as [RedisServer];
      // The grant must have reached the replica.
      await sleep(UNREPLICATED_MS);
      if (kind.endsWith('kill')) await old.kill();
      else await replica.command('CLUSTER', 'FAILOVER');
      const failedAt = performance.now();
      await cluster.waitForNewOwner(slotOfLock(name), old.port);
      const newAt = performance.now();
      await untilListening(name);
      figure(`${library}: new master after`, newAt - failedAt);
      figure(`${library}: waiters listen there after`, performance.now() - newAt);
      expect(await handOffMs(lease, entered)).toBeLessThan(TOLD_MS);
      if (!old.running) await old.restart();
      await cluster.waitUntilReady();
    });
  },
);
