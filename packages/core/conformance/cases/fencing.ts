import assert from 'node:assert/strict';
import { behindProxies } from '../behind-proxies.ts';
import type { ConformanceCase } from '../case.ts';
import type { Client } from '../case-context.ts';
import { assertRising } from '../critical-section.ts';
import { fencing, forceRelease, leaseTenure, needs, processes, wire } from '../needs.ts';
import { grab, openCall } from '../raw.ts';
import { startWaiting, watch } from '../waiter.ts';

export const fencingCases: readonly ConformanceCase[] = [
  {
    id: 'fencing/as-declared',
    clause: '§6.5',
    title: 'a lease and a grant have a token where the backend declares fencing, and none where it does not',
    async run(context) {
      const { backend, locks } = await context.client();
      const wanted = backend.capabilities.fencing === 'none' ? 'undefined' : 'bigint';
      const lease = await locks.lock(context.name()).acquire();
      assert.equal(typeof lease.fencingToken, wanted);
      await lease.release();
      const grant = await grab(backend, context.name(), 30_000);
      assert.equal(typeof grant.fencingToken, wanted);
      await backend.release(grant, openCall);
    },
  },
  {
    id: 'fencing/rises-over-holders',
    clause: '§6.1',
    title: 'the token rises with every holder, also after the store forgot the resource',
    ...needs(fencing),
    async run(context) {
      const name = context.name();
      const { locks } = await context.client();
      const tokens: (bigint | undefined)[] = [];
      for (let turn = 0; turn < 12; turn += 1) {
        tokens.push(await locks.lock(name).run((lease) => lease.fencingToken));
      }
      assertRising(tokens);
    },
  },
  {
    id: 'fencing/rises-over-clients',
    clause: '§6.1',
    title: 'the token rises from client to client',
    ...needs(fencing),
    async run(context) {
      const name = context.name();
      const clients = [await context.client(), await context.client(), await context.client()];
      const tokens: (bigint | undefined)[] = [];
      for (let turn = 0; turn < 9; turn += 1) {
        const client = clients[context.random.between(0, 2)];
        tokens.push(await client?.locks.lock(name).run((lease) => lease.fencingToken));
      }
      assertRising(tokens);
    },
  },
  {
    id: 'fencing/rises-on-hand-off',
    clause: '§6.1',
    title: 'a waiter that gets the resource from its holder has a higher token',
    ...needs(fencing),
    async run(context) {
      const name = context.name();
      const { locks } = await context.client();
      const first = await locks.lock(name).acquire();
      const tokens = [first.fencingToken];
      const take = async (): Promise<Promise<void>> => {
        const { lease } = await startWaiting(context, name);
        return lease.then((held) => {
          tokens.push(held.fencingToken);
          return held.release();
        });
      };
      const waiting = [take(), take()];
      await first.release();
      await Promise.all(waiting);
      assert.equal(tokens.length, 3);
      assertRising(tokens);
    },
  },
  {
    id: 'fencing/rises-over-processes',
    clause: '§6.1',
    title: 'the token rises from process to process',
    ...needs(fencing, processes),
    async run(context) {
      const name = context.name();
      const { locks } = await context.client();
      const children = await Promise.all([context.child(), context.child()]);
      const tokens: (bigint | string | undefined)[] = [];
      for (let turn = 0; turn < 3; turn += 1) {
        tokens.push(await locks.lock(name).run((lease) => lease.fencingToken));
        for (const child of children) {
          const { id, token } = await child.acquire(name);
          tokens.push(token);
          await child.release(id);
        }
      }
      assertRising(tokens);
    },
  },
  {
    id: 'fencing/rises-after-expiry',
    clause: '§6.1',
    title: 'the token rises from an expired lease to the next lease',
    ...needs(fencing, leaseTenure),
    async run(context) {
      const name = context.name();
      const stale = await grab(await context.backend(), name, context.timing.ttlMs);
      const { locks } = await context.client();
      const next = await locks.lock(name).acquire();
      assertRising([stale.fencingToken, next.fencingToken]);
      await next.release();
    },
  },
  {
    id: 'fencing/rises-after-kill',
    clause: '§6.4',
    title: 'the token rises from a killed holder to the next holder',
    ...needs(fencing, processes),
    async run(context) {
      const name = context.name();
      const child = await context.child();
      const killed = await child.acquire(name, { ttlMs: context.livingTtlMs });
      await child.kill();
      const { locks } = await context.client({ waitMs: 30_000 });
      const next = await locks.lock(name).acquire();
      assertRising([killed.token, next.fencingToken]);
      await next.release();
    },
  },
  {
    id: 'fencing/rises-after-force-release',
    clause: '§6.1',
    title: 'the token rises from a holder that was released by force to the next holder',
    ...needs(fencing, forceRelease),
    async run(context) {
      const name = context.name();
      const { locks } = await context.client();
      const forced = await locks.lock(name).acquire();
      await locks.forceRelease(name);
      const next = await locks.lock(name).acquire();
      assertRising([forced.fencingToken, next.fencingToken]);
      await next.release();
    },
  },
  {
    id: 'fencing/renewal-keeps-it',
    clause: '§6.2',
    title: 'a renewal keeps the token, on the lease and in the store',
    ...needs(fencing),
    async run(context) {
      const name = context.name();
      const { backend, locks } = await context.client();
      const lease = await locks.lock(name).acquire();
      const { fencingToken } = lease;
      for (let renewal = 0; renewal < 3; renewal += 1) await lease.renew();
      assert.equal(lease.fencingToken, fencingToken);
      const { holders } = await backend.inspect(name, openCall);
      assert.equal(holders[0]?.fencingToken, fencingToken);
      await lease.release();
    },
  },
  {
    id: 'fencing/belongs-to-the-lease',
    clause: '§6.3',
    title: 'a lost lease keeps its own token after a successor was granted',
    ...needs(fencing, leaseTenure),
    async run(context) {
      const name = context.name();
      const [first, second] = [await context.client(), await context.client()];
      const stale = await first.locks.lock(name).acquire({ ttlMs: context.timing.ttlMs, renewal: 'manual' });
      const { fencingToken } = stale;
      const next = await second.locks.lock(name).acquire();
      assert.equal(stale.fencingToken, fencingToken);
      assertRising([stale.fencingToken, next.fencingToken]);
      await next.release();
    },
  },
  {
    id: 'fencing/rises-past-a-slow-client',
    clause: '§6.1',
    title: 'a client with slow requests gets no token below those of holders in the meantime',
    ...needs(wire, fencing),
    async run(context) {
      const name = context.name();
      const [slow, quick] = [await behindProxies(context), await context.client()];
      for (const proxy of slow.proxies) proxy.latency(25, { direction: 'toServer' });
      const tokens: (bigint | undefined)[] = [];
      const take = async ({ locks }: Client): Promise<void> => {
        const lease = await locks.lock(name).tryAcquire();
        if (lease !== undefined) tokens.push(lease.fencingToken);
        await lease?.release();
      };
      for (let round = 0; round < 20; round += 1) {
        const taking = take(slow);
        watch(taking);
        // The last turn ends before the first request of the slow client, or between two of them.
        for (let turn = round % 10; turn > 0; turn -= 1) {
          await take(quick);
          await context.sleep(4);
        }
        await taking;
      }
      assertRising(tokens);
    },
  },
];
