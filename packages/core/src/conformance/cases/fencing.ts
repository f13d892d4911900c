import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import { assertRising } from '../history.ts';
import { fencing, forceRelease, leaseTenure, needs, processes } from '../needs.ts';
import { grab, openCall } from '../raw.ts';
import { startWaiting } from '../waiter.ts';

export const fencingCases: readonly ConformanceCase[] = [
  {
    id: 'fencing/as-declared',
    clause: '§6.5',
    title: 'a lease and a grant have a token where the backend declares fencing, and none where it does not',
    async run(stage) {
      const { backend, locks } = await stage.client();
      const wanted = backend.capabilities.fencing === 'none' ? 'undefined' : 'bigint';
      const lease = await locks.lock(stage.name()).acquire();
      assert.equal(typeof lease.fencingToken, wanted);
      await lease.release();
      const grant = await grab(backend, stage.name(), 30_000);
      assert.equal(typeof grant.fencingToken, wanted);
      await backend.release(grant, openCall);
    },
  },
  {
    id: 'fencing/rises-over-holders',
    clause: '§6.1',
    title: 'the token rises with every holder, also of a resource that was forgotten in between',
    ...needs(fencing),
    async run(stage) {
      const name = stage.name();
      const { locks } = await stage.client();
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
    async run(stage) {
      const name = stage.name();
      const clients = [await stage.client(), await stage.client(), await stage.client()];
      const tokens: (bigint | undefined)[] = [];
      for (let turn = 0; turn < 9; turn += 1) {
        const client = clients[stage.random.between(0, 2)];
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
    async run(stage) {
      const name = stage.name();
      const { locks } = await stage.client();
      const first = await locks.lock(name).acquire();
      const tokens = [first.fencingToken];
      const take = async (): Promise<Promise<void>> => {
        const { lease } = await startWaiting(stage, name);
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
    async run(stage) {
      const name = stage.name();
      const { locks } = await stage.client();
      const children = await Promise.all([stage.child(), stage.child()]);
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
    title: 'the token rises from a lease that ran out to the next',
    ...needs(fencing, leaseTenure),
    async run(stage) {
      const name = stage.name();
      const stale = await grab(await stage.backend(), name, stage.timing.ttlMs);
      const { locks } = await stage.client();
      const next = await locks.lock(name).acquire();
      assertRising([stale.fencingToken, next.fencingToken]);
      await next.release();
    },
  },
  {
    id: 'fencing/rises-after-kill',
    clause: '§6.4',
    title: 'the token rises from a holder that was killed to the next',
    ...needs(fencing, processes),
    async run(stage) {
      const name = stage.name();
      const child = await stage.child();
      const killed = await child.acquire(name, { ttlMs: stage.livingTtlMs });
      await child.kill();
      const { locks } = await stage.client({ waitMs: 30_000 });
      const next = await locks.lock(name).acquire();
      assertRising([killed.token, next.fencingToken]);
      await next.release();
    },
  },
  {
    id: 'fencing/rises-after-force-release',
    clause: '§6.1',
    title: 'the token rises from a holder that was released by force to the next',
    ...needs(fencing, forceRelease),
    async run(stage) {
      const name = stage.name();
      const { locks } = await stage.client();
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
    async run(stage) {
      const name = stage.name();
      const { backend, locks } = await stage.client();
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
    title: 'a lost lease keeps its own token though the store has moved on',
    ...needs(fencing, leaseTenure),
    async run(stage) {
      const name = stage.name();
      const [first, second] = [await stage.client(), await stage.client()];
      const stale = await first.locks.lock(name).acquire({ ttlMs: stage.timing.ttlMs, renewal: 'manual' });
      const { fencingToken } = stale;
      const next = await second.locks.lock(name).acquire();
      assert.equal(stale.fencingToken, fencingToken);
      assertRising([stale.fencingToken, next.fencingToken]);
      await next.release();
    },
  },
];
