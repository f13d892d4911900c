import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import { isLockError } from '../../src/errors.ts';
import { assertAbove, assertRising } from '../critical-section.ts';
import { fencing, fifo, needs, permits, strictOrder } from '../needs.ts';
import type { CaseContext } from '../case-context.ts';
import { granted, startWaitingFor, startWaitingTogether, type Waiter, watch } from '../waiter.ts';

function waitFor(
  context: CaseContext,
  name: string,
  limit: number,
  weight = 1,
  signal?: AbortSignal,
): Promise<Waiter> {
  return startWaitingFor(context, (locks) => locks.semaphore(name, limit), {
    weight,
    waitMs: 60_000,
    signal,
  });
}

async function releaseAll(waiters: readonly Waiter[]): Promise<void> {
  await Promise.all(waiters.map(async ({ lease }) => (await lease).release()));
}

export const permitsQueueCases: readonly ConformanceCase[] = [
  {
    id: 'permits/a-heavy-one-is-not-overtaken',
    clause: '§15.6',
    title: 'a request that needs more permits than are free blocks lighter requests that came later',
    ...needs(fifo, permits),
    async run(context) {
      const name = context.name();
      const slots = (await context.client()).locks.semaphore(name, 3);
      const two = await slots.acquire({ weight: 2 });
      const heavy = await waitFor(context, name, 3, 3);
      assert.equal(await slots.tryAcquire(), undefined, 'a light one overtook the heavy one that waits');
      const light = await waitFor(context, name, 3, 1);
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
    title:
      'when a heavy holder releases, as many waiters at the head as fit enter at once, each with a token of its own',
    ...needs(fifo, permits),
    async run(context) {
      const name = context.name();
      const { slackMs } = context.timing;
      const all = await (await context.client()).locks.semaphore(name, 3).acquire({ weight: 3 });
      const waiting: Waiter[] = [];
      for (let index = 0; index < 4; index += 1) waiting.push(await waitFor(context, name, 3));
      await all.release();
      const entered = (): number => waiting.filter((waiter) => waiter.settled() !== undefined).length;
      await context.until('three enter', () => entered() >= 3, 5 * slackMs);
      assert.equal(entered(), 3);
      assert.equal(waiting[3]?.settled(), undefined);
      const leases = await Promise.all(waiting.slice(0, 3).map(({ lease }) => lease));
      const tokens = leases.map(({ fencingToken }) => fencingToken);
      if (waiting[0]?.backend.capabilities.fencing !== 'none') assertAbove(all.fencingToken, tokens);
      await releaseAll(waiting);
    },
  },
  {
    id: 'permits/neighbours-of-one-client-have-tokens-of-their-own',
    clause: '§15.8',
    title:
      'permits of one client that are granted in one step have tokens that rise in the order of the queue',
    ...needs(fencing, strictOrder, fifo, permits),
    async run(context) {
      const name = context.name();
      const all = await (await context.client()).locks.semaphore(name, 4).acquire({ weight: 4 });
      const waiting = await startWaitingTogether(context, (locks) => locks.semaphore(name, 4), 4, {
        waitMs: 60_000,
      });
      await all.release();
      const entered = await Promise.all(waiting);
      assertRising([all, ...entered].map(({ fencingToken }) => fencingToken));
      await Promise.all(entered.map((lease) => lease.release()));
    },
  },
  {
    id: 'permits/who-gives-up-lets-others-through',
    clause: '§7.2',
    title: 'when a heavy waiter at the head gives up, the lighter waiters behind it enter',
    ...needs(fifo, permits),
    async run(context) {
      const name = context.name();
      const { slackMs, idleGapMs } = context.timing;
      const two = await (await context.client()).locks.semaphore(name, 3).acquire({ weight: 2 });
      const abort = new AbortController();
      const heavy = await waitFor(context, name, 3, 2, abort.signal);
      watch(heavy.lease);
      const light = await waitFor(context, name, 3, 1);
      abort.abort(new Error('enough'));
      await granted(context, light, idleGapMs + 5 * slackMs);
      await assert.rejects(heavy.lease, /enough/);
      await releaseAll([light]);
      await two.release();
    },
  },
  {
    id: 'permits/more-permits-let-waiters-in',
    clause: '§15.7',
    title: 'a higher limit lets waiters in, and applies to all requests from then on',
    ...needs(fifo, permits),
    async run(context) {
      const name = context.name();
      const { slackMs, idleGapMs } = context.timing;
      const operator = (await context.client()).locks.semaphore(name, 1);
      const first = await operator.acquire();
      const waiting = await waitFor(context, name, 1);
      const behind = await waitFor(context, name, 1);
      await operator.resize(2);
      assert.equal(operator.permits, 2);
      await granted(context, waiting, idleGapMs + 5 * slackMs);
      assert.equal(behind.settled(), undefined, 'three of two permits were given out');
      const old = (await context.client()).locks.semaphore(name, 1);
      await assert.rejects(old.acquire(), (error) => isLockError(error, 'LOCK_CONFLICT'));
      await first.release();
      await releaseAll([waiting, behind]);
    },
  },
  {
    id: 'permits/more-than-there-are-waits',
    clause: '§15.7',
    title: 'a waiter for more permits than a lowered limit keeps its turn, until the limit is raised',
    ...needs(fifo, permits),
    async run(context) {
      const name = context.name();
      const { slackMs, idleGapMs } = context.timing;
      const operator = (await context.client()).locks.semaphore(name, 3);
      const first = await operator.acquire();
      const heavy = await waitFor(context, name, 3, 3);
      await operator.resize(2);
      const light = await waitFor(context, name, 2);
      await first.release();
      await context.sleep(slackMs);
      assert.equal(heavy.settled(), undefined, 'three of two permits were given out');
      assert.equal(light.settled(), undefined, 'a light one overtook the heavy one that waits');
      await operator.resize(3);
      const lease = await granted(context, heavy, idleGapMs + 5 * slackMs);
      assert.equal(light.settled(), undefined, 'four of three permits were given out');
      await lease.release();
      await releaseAll([light]);
    },
  },
  {
    id: 'permits/fewer-permits-end-no-hold',
    clause: '§15.7',
    title: 'a lower limit ends no hold, and nothing is granted until the held permits fit',
    ...needs(permits),
    async run(context) {
      const name = context.name();
      const slots = (await context.client()).locks.semaphore(name, 3);
      const leases = [await slots.acquire(), await slots.acquire(), await slots.acquire()];
      await slots.resize(2);
      for (const lease of leases) await lease.renew();
      await leases[0]?.release();
      assert.equal(await slots.tryAcquire(), undefined, 'a permit was granted above the limit');
      await leases[1]?.release();
      const next = await slots.tryAcquire();
      assert.ok(next, 'one of two permits was free, and refused');
      await next.release();
      await leases[2]?.release();
      // An unused semaphore has no limit to change: the next acquire sets it.
      await slots.resize(7);
      const one = await (await context.client()).locks.semaphore(name, 1).acquire();
      await one.release();
    },
  },
  {
    id: 'permits/first-come-first-served',
    clause: '§7.1',
    title: 'waiters get permits in the order in which they came',
    ...needs(fifo, permits),
    async run(context) {
      const name = context.name();
      const holder = await (await context.client()).locks.semaphore(name, 1).acquire();
      const served: number[] = [];
      const turns: Promise<void>[] = [];
      for (let position = 0; position < 6; position += 1) {
        const { lease } = await waitFor(context, name, 1);
        const turn = lease.then((granted) => {
          served.push(position);
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
