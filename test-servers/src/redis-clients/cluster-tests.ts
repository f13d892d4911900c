import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call, type Participant, request } from '../participant.ts';
import type { RedisCluster } from '../redis/redis-cluster.ts';
import { startCluster } from '../redis/start-cluster.ts';
import { slotOf } from '../redis/slot-of.ts';
import { waitUntil } from '../wait-until.ts';

type OpenCluster = (roots: readonly { readonly port: number }[]) => Promise<Participant>;

let count = 0;
const fresh = () => `resource-${++count}`;

/**
 * What a cluster does through the clients of a library, whatever happens to its slots and its masters.
 *
 * @param open - opens the client that holds first
 * @param openOther - opens the client that waits for it, perhaps one of another library
 */
export function testCluster(library: string, open: OpenCluster, openOther: OpenCluster): void {
  describe(`a cluster through ${library}`, () => {
    let cluster: RedisCluster;
    let a: Participant;
    let b: Participant;

    beforeAll(async () => {
      cluster = await startCluster({ masters: 3, replicasPerMaster: 1, nodeTimeoutMs: 1500 });
      a = await open(cluster.roots);
      b = await openOther(cluster.roots);
    });
    afterAll(async () => {
      await a?.[Symbol.asyncDispose]();
      await b?.[Symbol.asyncDispose]();
      await cluster?.stop();
    });

    it('locks, renews, lists and hands off on every node', async () => {
      const names = Array.from({ length: 30 }, fresh);
      const grants = await Promise.all(names.map((name) => a.take(name)));
      const renewalStatuses = await a.backend.renew(
        grants.map((grant) => ({ grant, ttlMs: 30_000 })),
        call,
      );
      expect(renewalStatuses).toEqual(names.map(() => ({ status: 'held' })));
      const listed = [];
      for await (const { name } of a.backend.list?.('resource-', call) ?? []) listed.push(name);
      expect(listed.sort()).toEqual([...names].sort());
      const queued = await Promise.all(names.map((name) => b.queue(request(name))));
      for (const grant of grants) expect(await a.backend.release(grant, call)).toBe('released');
      for (const { turn } of queued) {
        const got = await turn;
        if (got === undefined) throw new Error('no grant');
        expect(await b.backend.release(got, call)).toBe('released');
      }
    });

    it('passes over a waiter whose process died before it listened', async () => {
      const dying = await open(cluster.roots);
      const name = fresh();
      const grant = await a.take(name);
      await dying.queue(request(name));
      const { turn } = await b.queue(request(name));
      await dying[Symbol.asyncDispose]();
      const from = performance.now();
      await a.backend.release(grant, call);
      const got = await turn;
      // It counts as alive for three checks.
      expect(performance.now() - from).toBeLessThan(3000 + 1000 + 1500);
      if (got) await b.backend.release(got, call);
    });

    it('keeps leases through the migration of their slot, and loses no waiter', async () => {
      const name = fresh();
      const slot = slotOf(`lock::${name}`);
      const source = await cluster.slotOwner(slot);
      const to = await cluster.slotOwner((slot + 8192) % 16384);
      expect(to.port).not.toBe(source.port);
      const grant = await a.take(name);
      const { turn } = await b.queue(request(name));
      const seen: string[] = [];
      const renewed = async () => {
        const [renewalStatus] = await a.backend.renew([{ grant, ttlMs: 30_000 }], call);
        seen.push(String(renewalStatus?.status));
      };
      await cluster.migrateSlot(slot, to, {
        beforeKeys: renewed,
        // The lock key is still here, the token key and the queue are there.
        first: (key) => key !== `lock::${name}`,
        between: async () => {
          await renewed();
          expect(await a.backend.release(grant, call)).toBe('released');
        },
      });
      expect(seen).toEqual(['held', 'held']);
      const got = await turn;
      expect(got?.fencingToken).toBeGreaterThan(grant.fencingToken as bigint);
      if (got) expect(await b.backend.release(got, call)).toBe('released');
    });

    it('goes on after the failover of a master', async () => {
      const name = fresh();
      const slot = slotOf(`lock::${name}`);
      const master = await cluster.slotOwner(slot);
      const grant = await a.take(name, 60_000);
      await master.command('WAIT', 1, 2000);
      const { turn } = await b.queue(request(name));
      await master.kill();
      await cluster.waitForNewOwner(slot, master.port);
      const released = await waitUntil(() => a.backend.release(grant, call).catch(() => undefined), {
        what: 'the release on the new master',
        timeoutMs: 15_000,
      });
      // A lease either survived or is reported lost.
      expect(['released', 'not-held', 'unknown']).toContain(released);
      const got = await turn;
      expect(got).toBeDefined();
      await master.restart();
      await cluster.waitUntilReady();
    });
  });
}
