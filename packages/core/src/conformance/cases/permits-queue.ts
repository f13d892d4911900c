import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import { isLockError } from '../../errors.ts';
import { assertAbove } from '../history.ts';
import { fifo, needs, permits } from '../needs.ts';
import type { Stage } from '../stage.ts';
import { startWaitingFor, type Waiter, watch } from '../waiter.ts';

function waitFor(
  stage: Stage,
  name: string,
  limit: number,
  weight = 1,
  signal?: AbortSignal,
): Promise<Waiter> {
  return startWaitingFor(stage, (locks) => locks.semaphore(name, limit), { weight, waitMs: 60_000, signal });
}

async function releaseAll(waiters: readonly Waiter[]): Promise<void> {
  await Promise.all(waiters.map(async ({ lease }) => (await lease).release()));
}

export const permitsQueueCases: readonly ConformanceCase[] = [
  {
    id: 'permits/a-heavy-one-is-not-overtaken',
    clause: '§15.6',
    title: 'a request that needs more than is free keeps back lighter ones that came later',
    ...needs(fifo, permits),
    async run(stage) {
      const name = stage.name();
      const slots = (await stage.client()).locks.semaphore(name, 3);
      const two = await slots.acquire({ weight: 2 });
      const heavy = await waitFor(stage, name, 3, 3);
      assert.equal(await slots.tryAcquire(), undefined, 'a light one overtook the heavy one that waits');
      const light = await waitFor(stage, name, 3, 1);
      assert.equal(light.settled(), undefined, 'a light one overtook the heavy one that waits');
      await two.release();
      const heavyLease = await heavy.lease;
      assert.equal(light.settled(), undefined, 'four of three permits were given out');
      await heavyLease.release();
      await releaseAll([light]);
    },
  },
  {
    id: 'permits/all-that-fit-enter',
    clause: '§15.2',
    title: 'when a heavy one leaves, as many at the head enter as fit, at once, each with a token of its own',
    ...needs(fifo, permits),
    async run(stage) {
      const name = stage.name();
      const { slackMs } = stage.timing;
      const all = await (await stage.client()).locks.semaphore(name, 3).acquire({ weight: 3 });
      const waiting: Waiter[] = [];
      for (let index = 0; index < 4; index += 1) waiting.push(await waitFor(stage, name, 3));
      await all.release();
      const entered = (): number => waiting.filter((waiter) => waiter.settled() !== undefined).length;
      await stage.until('three enter', () => entered() >= 3, 5 * slackMs);
      assert.equal(entered(), 3);
      assert.equal(waiting[3]?.settled(), undefined);
      const leases = await Promise.all(waiting.slice(0, 3).map(({ lease }) => lease));
      const tokens = leases.map(({ fencingToken }) => fencingToken);
      if (waiting[0]?.backend.capabilities.fencing !== 'none') assertAbove(all.fencingToken, tokens);
      await releaseAll(waiting);
    },
  },
  {
    id: 'permits/who-gives-up-lets-others-through',
    clause: '§7.2',
    title: 'when a heavy one at the head gives up, the lighter ones behind it enter',
    ...needs(fifo, permits),
    async run(stage) {
      const name = stage.name();
      const { slackMs, idleGapMs } = stage.timing;
      const two = await (await stage.client()).locks.semaphore(name, 3).acquire({ weight: 2 });
      const abort = new AbortController();
      const heavy = await waitFor(stage, name, 3, 2, abort.signal);
      watch(heavy.lease);
      const light = await waitFor(stage, name, 3, 1);
      abort.abort(new Error('enough'));
      await stage.until('the light one enters', () => light.settled() !== undefined, idleGapMs + 5 * slackMs);
      await assert.rejects(heavy.lease, /enough/);
      await releaseAll([light]);
      await two.release();
    },
  },
  {
    id: 'permits/more-permits-let-waiters-in',
    clause: '§15.7',
    title: 'a higher limit lets those in who wait, and holds for all from then on',
    ...needs(fifo, permits),
    async run(stage) {
      const name = stage.name();
      const { slackMs, idleGapMs } = stage.timing;
      const operator = (await stage.client()).locks.semaphore(name, 1);
      const first = await operator.acquire();
      const waiting = await waitFor(stage, name, 1);
      const behind = await waitFor(stage, name, 1);
      await operator.resize(2);
      assert.equal(operator.permits, 2);
      await stage.until('the waiter enters', () => waiting.settled() !== undefined, idleGapMs + 5 * slackMs);
      assert.equal(behind.settled(), undefined, 'three of two permits were given out');
      const old = (await stage.client()).locks.semaphore(name, 1);
      await assert.rejects(old.acquire(), (error) => isLockError(error, 'LOCK_CONFLICT'));
      await first.release();
      await releaseAll([waiting, behind]);
    },
  },
  {
    id: 'permits/fewer-permits-end-no-hold',
    clause: '§15.7',
    title: 'a lower limit ends no hold, and nothing is granted until those that are held fit',
    ...needs(permits),
    async run(stage) {
      const name = stage.name();
      const slots = (await stage.client()).locks.semaphore(name, 3);
      const leases = [await slots.acquire(), await slots.acquire(), await slots.acquire()];
      await slots.resize(2);
      for (const lease of leases) await lease.renew();
      await leases[0]?.release();
      assert.equal(await slots.tryAcquire(), undefined, 'a permit was given out above the limit');
      await leases[1]?.release();
      const next = await slots.tryAcquire();
      assert.ok(next, 'one of two was free, and refused');
      await next.release();
      await leases[2]?.release();
      // In no use there is nothing to resize; the next who comes says how many there are.
      await slots.resize(7);
      const one = await (await stage.client()).locks.semaphore(name, 1).acquire();
      await one.release();
    },
  },
  {
    id: 'permits/first-come-first-served',
    clause: '§7.1',
    title: 'those who wait for permits get them in the order in which they came',
    ...needs(fifo, permits),
    async run(stage) {
      const name = stage.name();
      const holder = await (await stage.client()).locks.semaphore(name, 1).acquire();
      const served: number[] = [];
      const turns: Promise<void>[] = [];
      for (let place = 0; place < 6; place += 1) {
        const { lease } = await waitFor(stage, name, 1);
        const turn = lease.then((granted) => {
          served.push(place);
          return granted.release();
        });
        watch(turn);
        turns.push(turn);
      }
      await holder.release();
      await Promise.all(turns);
      assert.deepEqual(served, [0, 1, 2, 3, 4, 5]);
    },
  },
];
