import { machineNow } from '@locks/core/conformance/process';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RedisCluster, type RedisServer, slotOf, startCluster, waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RedisAddress } from '../src/harnesses/redis/address.ts';
import { libraries, openClient } from '../src/harnesses/redis/open-client.ts';
import { failure, figure, lossOf, untilWaiting, watched } from '../src/fault-lab/observe.ts';
import Lab from './lab.ts';
import { assertNoOverlap, assertTokensRise, recoveryMs, together } from './load-history.ts';

const CHECK_MS = 1_000;
const NODE_TIMEOUT_MS = 2_000;
/** A node is called down after one to two node timeouts, and its replica elected within another second. */
const FAILOVER_MS = 2 * NODE_TIMEOUT_MS + 1_000;
const SLACK_MS = 1_000;
/** Grants this young may not have reached a replica when the master fails. */
const UNREPLICATED_MS = 500;
/** Until clients have found the new owner of a slot. */
const TTL_MS = 4_000;

let cluster: RedisCluster;
let address: RedisAddress;

beforeAll(async () => {
  cluster = await startCluster({ nodeTimeoutMs: NODE_TIMEOUT_MS });
  address = { kind: 'cluster', roots: cluster.roots };
}, 60_000);

afterAll(async () => cluster.stop());

/** Names of locks in one slot, which is not easy to arrange: braces in names are no hash tags. */
function namesInOneSlot(count: number, tag: string): string[] {
  const bySlot = new Map<number, string[]>();
  for (let tried = 0; ; tried += 1) {
    const name = `${tag} ${tried}`;
    const slot = slotOf(`lock::${name}`);
    const names = [...(bySlot.get(slot) ?? []), name];
    if (names.length === count) return names;
    bySlot.set(slot, names);
  }
}

async function anotherMaster(than: RedisServer): Promise<RedisServer> {
  const masters = (await cluster.topology()).filter(({ role, failed }) => role === 'master' && !failed);
  const other = masters.find(({ server }) => server !== than);
  if (other === undefined) throw new Error('The cluster has one master only.');
  return other.server;
}

describe.each(libraries)('a slot on its way to another master, with %s', { timeout: 60_000 }, (library) => {
  it.each([
    // Which keys have moved when the test calls: both sides of every split.
    ['the lock key first', (key: string, lock: string) => key === lock],
    ['the lock key last', (key: string, lock: string) => key !== lock],
  ])(
    'keeps leases: renewals, releases, hand-offs and waiters work half-way (%s)',
    async (which, movesFirst) => {
      await using lab = new Lab(library);
      const [holder, waiter] = [
        await lab.locks(address, { ttlMs: TTL_MS }),
        await lab.locks(address, { ttlMs: TTL_MS }),
      ];
      const [kept, renewed, released, handed, fresh] = namesInOneSlot(5, `${which}, ${library}`) as [
        string,
        string,
        string,
        string,
        string,
      ];
      const slot = slotOf(`lock::${kept}`);
      const keptLease = await holder.lock(kept).acquire();
      const renewedLease = await holder.lock(renewed).acquire();
      const releasedLease = await holder.lock(released).acquire();
      const handedLease = await holder.lock(handed).acquire();
      const entered = waiter.lock(handed).acquire({ waitMs: 20_000 });
      await untilWaiting(waiter, handed);
      const source = await cluster.slotOwner(slot);
      const target = await anotherMaster(source);
      const startedAt = performance.now();
      await cluster.migrateSlot(slot, target, {
        first: (key) => movesFirst(key, `lock::${handed}`),
        between: async () => {
          await Promise.all([renewedLease.renew(), keptLease.renew()]);
          await releasedLease.release();
          await handedLease.release();
          await sleep(300);
        },
        afterKeys: async () => {
          await renewedLease.renew();
        },
      });
      const migratedAt = performance.now();
      const next = await entered;
      figure(
        `${library}: waiter of a migrating slot in after the end of the migration`,
        performance.now() - migratedAt,
      );
      expect(performance.now() - migratedAt).toBeLessThan(CHECK_MS + SLACK_MS);
      expect(next.fencingToken).toBeGreaterThan(handedLease.fencingToken as bigint);
      // Past their ttl, renewed all the while.
      await waitUntil(() => performance.now() > startedAt + TTL_MS + 200, { what: 'the ttl' });
      for (const lease of [keptLease, renewedLease]) {
        expect(lease.signal.aborted).toBe(false);
        expect(await target.command('GET', `lock::${lease.name}`)).toContain(lease.acquisitionId);
        await lease.release();
      }
      await next.release();
      await (await waiter.lock(fresh).acquire({ waitMs: 2_000 })).release();
      for (const name of [kept, renewed, released, handed, fresh])
        expect(await target.command('EXISTS', `lock::${name}`), name).toBe(0);
    },
  );

  it.each(['the lock keys first', 'the lock keys last'])(
    'keeps readers and permits: renewals and releases work half-way (%s)',
    async (which) => {
      await using lab = new Lab(library);
      const [holder, waiter] = [
        await lab.locks(address, { ttlMs: TTL_MS }),
        await lab.locks(address, { ttlMs: TTL_MS }),
      ];
      const [shared, permits] = namesInOneSlot(2, `shares, ${which}, ${library}`) as [string, string];
      const kept = await holder.readWriteLock(shared).read.acquire();
      const left = await waiter.readWriteLock(shared).read.acquire();
      const semaphore = waiter.semaphore(permits, 3);
      const keptPermit = await semaphore.acquire();
      const leftPermit = await holder.semaphore(permits, 3).acquire({ weight: 2 });
      const writing = watched(holder.lock(shared).acquire({ waitMs: 20_000 }));
      const heavy = semaphore.acquire({ weight: 2, waitMs: 20_000 });
      await untilWaiting(waiter, permits);
      const slot = slotOf(`lock::${shared}`);
      const target = await anotherMaster(await cluster.slotOwner(slot));
      const lockKeys = [`lock::${shared}`, `lock::${permits}`];
      await cluster.migrateSlot(slot, target, {
        first: (key) => lockKeys.includes(key) === (which === 'the lock keys first'),
        between: async () => {
          await Promise.all([kept.renew(20_000), keptPermit.renew(20_000)]);
          await left.release();
          await leftPermit.release();
        },
        afterKeys: async () => {
          await Promise.all([kept.renew(), keptPermit.renew()]);
        },
      });
      const migratedAt = performance.now();
      // Its weight comes back by itself: a share that is released half-way has ended for the next check.
      const permit = await heavy;
      figure(`${library}: permit of a migrating slot in after its end`, performance.now() - migratedAt);
      expect(performance.now() - migratedAt).toBeLessThan(CHECK_MS + SLACK_MS);
      expect(await target.command('GET', `lock::${permits}`)).toMatch(/^\*3\|3\|/);
      for (const { acquisitionId, expiresInMs } of (await waiter.inspect(permits)).holders) {
        if (acquisitionId === keptPermit.acquisitionId) expect(expiresInMs).toBeGreaterThan(2 * TTL_MS);
      }
      expect(writing.settled).toBe(false);
      for (const lease of [kept, keptPermit, permit]) await lease.release();
      await (await writing.work).release();
      for (const name of [shared, permits])
        expect(await target.command('EXISTS', `lock::${name}`, `{lock::${name}}:h`), name).toBe(0);
    },
  );

  it.each(['the lock key first', 'the lock key last'])(
    'keeps a writer whose downgrade failed half-way (%s)',
    async (which) => {
      await using lab = new Lab(library);
      const locks = await lab.locks(address, { ttlMs: TTL_MS });
      const name = `downgraded, ${which}, ${library}`;
      const lease = await locks.readWriteLock(name).write.acquire();
      const slot = slotOf(`lock::${name}`);
      const target = await anotherMaster(await cluster.slotOwner(slot));
      await cluster.migrateSlot(slot, target, {
        first: (key) => (key === `lock::${name}`) === (which === 'the lock key first'),
        between: async () => {
          expect(await failure(lease.downgrade())).toMatchObject({ code: 'LOCK_BACKEND' });
          await lease.renew(20_000);
          lease.assertValid();
        },
      });
      expect(await target.command('GET', `lock::${name}`)).toContain(lease.acquisitionId);
      expect(await target.command('PTTL', `lock::${name}`)).toBeGreaterThan(2 * TTL_MS);
      await lease.downgrade();
      await (await locks.readWriteLock(name).read.acquire()).release();
      await lease.release();
      expect(await target.command('EXISTS', `lock::${name}`, `{lock::${name}}:h`)).toBe(0);
    },
  );
});

describe.each(libraries)('a fenced value on a cluster, with %s', (library) => {
  it('is written wherever its key lives, together with its fence', async () => {
    const client = await openClient(library, address);
    const keys = ['plain', '{tag}:a', 'b:{tag}', '{}:empty', 'open{', '}{x}', 'ünï'].map(
      (key) => `${key} ${library}`,
    );
    for (const key of keys) {
      await client.fencedSet(key, 'new', 7n);
      await expect(client.fencedSet(key, 'old', 6n), key).rejects.toMatchObject({ code: 'LOCK_LOST' });
      await client.fencedSet(key, 'newer', 8n);
    }
    await client.end();
  });
});

describe('a cluster under load', { timeout: 90_000 }, () => {
  it('keeps exclusion and every lease while slots migrate to and fro', async () => {
    await using lab = new Lab();
    const workers = await Promise.all(
      libraries.map((library) => lab.worker(address, { library, ttlMs: TTL_MS })),
    );
    const resources = namesInOneSlot(3, 'load');
    const slot = slotOf(`lock::${resources[0]}`);
    const names = namesInOneSlot(2, `load ${slot}`);
    const held = await Promise.all(
      workers.map(async (worker, index) => ({
        worker,
        lease: await worker.call.acquire(names[index] as string),
      })),
    );
    await Promise.all(
      workers.map((worker) => worker.call.startLoad({ resources, loops: 3, holdMs: 5, waitMs: 20_000 })),
    );
    await sleep(300);
    const startedAt = machineNow();
    for (const each of [slot, slotOf(`lock::${names[0]}`), slot]) {
      await cluster.migrateSlot(each, await anotherMaster(await cluster.slotOwner(each)), {
        beforeKeys: () => sleep(100),
        between: () => sleep(400),
        afterKeys: () => sleep(100),
      });
    }
    const endedAt = machineNow();
    await sleep(2 * CHECK_MS);
    const { sections, failures, unhandled } = together(
      await Promise.all(workers.map((worker) => worker.call.stopLoad())),
    );
    const during = sections.filter(({ enteredAt }) => enteredAt > startedAt && enteredAt < endedAt).length;
    process.stdout.write(
      `    migrations: ${sections.length} sections, ${during} of them in ${Math.round(endedAt - startedAt)} ms of migrations\n`,
    );
    expect(unhandled).toEqual([]);
    expect(failures).toEqual([]);
    assertNoOverlap(sections);
    assertTokensRise(sections);
    expect(sections.filter(({ lost }) => lost)).toEqual([]);
    expect(recoveryMs(sections, endedAt)).toBeLessThan(2 * CHECK_MS);
    for (const { worker, lease } of held) {
      expect(await worker.call.state(lease.id)).toMatchObject({ aborted: false });
      await worker.call.release(lease.id);
    }
  });

  it('a failover: leases survive or are reported lost, waiters get on', async () => {
    await using lab = new Lab();
    const resources = ['r0', 'r1', 'r2', 'r3', 'r4', 'r5'].map((name) => `failover ${name}`);
    const old = await cluster.slotOwner(slotOf(`lock::${resources[0]}`));
    const workers = await Promise.all(
      [...libraries, ...libraries].map((library) => lab.worker(address, { library, ttlMs: TTL_MS })),
    );
    const names = await namesOwnedBy(old, 2 * workers.length);
    const held = await Promise.all(
      workers.flatMap((worker, index) =>
        [TTL_MS, 20_000].map(async (ttlMs, at) => {
          const name = names[2 * index + at] as string;
          return { worker, name, ttlMs, lease: await worker.call.acquire(name, { ttlMs }) };
        }),
      ),
    );
    const lossAtHome = lossOf(await (await lab.locks(address)).lock('failover elsewhere').acquire());
    await Promise.all(
      workers.map((worker) => worker.call.startLoad({ resources, loops: 3, holdMs: 8, waitMs: 25_000 })),
    );
    await sleep(500);
    const failedAt = machineNow();
    await old.kill();
    const slot = slotOf(`lock::${resources[0]}`);
    const owner = await cluster.waitForNewOwner(slot, old.port);
    figure('cluster: new master after', machineNow() - failedAt);
    await sleep(failedAt + FAILOVER_MS + TTL_MS + SLACK_MS - machineNow());
    const { sections, failures, unhandled } = together(
      await Promise.all(workers.map((worker) => worker.call.stopLoad())),
    );
    const overlaps = assertNoOverlap(
      sections,
      ({ earlier }) => Math.abs(earlier.enteredAt - failedAt) < UNREPLICATED_MS,
    );
    process.stdout.write(
      `    failover: ${sections.length} sections, ${overlaps.length} overlaps, ${failures.length} failures\n`,
    );
    expect(unhandled).toEqual([]);
    assertTokensRise(sections);
    for (const { what } of failures) expect(what).toMatch(/^LOCK_(LOST|BACKEND) /);
    for (const library of libraries) {
      const recovered = recoveryMs(sections, failedAt, library);
      figure(`cluster: ${library} has taken every lock again after`, recovered);
      expect(recovered).toBeLessThan(FAILOVER_MS + TTL_MS + SLACK_MS);
    }
    let survived = 0;
    for (const { worker, name, ttlMs, lease } of held) {
      const { aborted, reason, validForMs } = await worker.call.state(lease.id);
      if (aborted) {
        expect(ttlMs, `${name} was lost: ${reason}`).toBe(TTL_MS);
        continue;
      }
      survived += 1;
      expect(validForMs).toBeGreaterThan(0);
      expect(await owner.command('GET', `lock::${name}`)).toContain(lease.acquisitionId);
      await worker.call.release(lease.id);
      expect(await owner.command('EXISTS', `lock::${name}`)).toBe(0);
    }
    process.stdout.write(
      `    ${survived} of ${held.length} held leases survived, the others were reported lost\n`,
    );
    // The slots of other masters never noticed.
    expect(await Promise.race([lossAtHome, Promise.resolve('still held')])).toBe('still held');
  });
});

async function namesOwnedBy(master: RedisServer, count: number): Promise<string[]> {
  const view = (await cluster.topology()).find(({ server }) => server === master);
  const owns = (slot: number) => view?.slots.some(([from, to]) => slot >= from && slot <= to) ?? false;
  const names = Array.from({ length: 20 * count }, (_, index) => `failover held ${index}`);
  return names.filter((name) => owns(slotOf(`lock::${name}`))).slice(0, count);
}
