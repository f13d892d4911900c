import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import type { LockManager } from '../../src/create-locks.ts';
import type { Lock } from '../../src/lock.ts';
import type { Lease } from '../../src/lease.ts';
import { assertAbove, assertRising } from '../critical-section.ts';
import { fencing, fifo, needs, shared, strictOrder } from '../needs.ts';
import { roundsUpTo } from '../rounds.ts';
import { granted, startWaitingFor, startWaitingTogether, watch } from '../waiter.ts';

const reader =
  (name: string) =>
  (locks: LockManager): Lock =>
    locks.readWriteLock(name).read;
const writer =
  (name: string) =>
  (locks: LockManager): Lock =>
    locks.readWriteLock(name).write as Lock;

export const sharedQueueCases: readonly ConformanceCase[] = [
  {
    id: 'shared/a-waiting-writer-holds-back-readers',
    clause: '§15.2',
    title: 'readers that come after a waiting writer enter after it',
    ...needs(fifo, shared),
    async run(context) {
      const name = context.name();
      const waitMs = 20 * context.timing.slackMs;
      const first = await reader(name)((await context.client()).locks).acquire();
      const waitingWriter = await startWaitingFor(context, writer(name), { waitMs });
      assert.equal(await reader(name)((await context.client()).locks).tryAcquire(), undefined);
      const late = await startWaitingFor(context, reader(name), { waitMs });
      assert.equal(late.settled(), undefined, 'a reader overtook the writer that waits');
      await first.release();
      const written = await waitingWriter.lease;
      assert.equal(late.settled(), undefined, 'a reader entered beside the writer');
      await written.release();
      await (await late.lease).release();
    },
  },
  {
    id: 'shared/no-writer-starves',
    clause: '§15.2',
    title: 'a writer enters although readers come all the time',
    ...needs(fifo, shared),
    async run(context) {
      const name = context.name();
      const { slackMs, idleGapMs } = context.timing;
      let over = false;
      const keepReading = async (offsetMs: number): Promise<void> => {
        const { read } = (await context.client({ waitMs: 60_000 })).locks.readWriteLock(name);
        await context.sleep(offsetMs);
        while (!over) await read.run(() => context.sleep(8));
      };
      const readers = [0, 3, 6].map(keepReading);
      await context.sleep(20);
      const elapsed = context.stopwatch();
      const lease = await writer(name)((await context.client()).locks).acquire({ waitMs: 20 * slackMs });
      const bound = slackMs + idleGapMs;
      const took = elapsed();
      over = true;
      await lease.release();
      await Promise.all(readers);
      assert.ok(took < bound, `it took ${Math.round(took)} ms, more than ${bound}`);
    },
  },
  {
    id: 'shared/no-reader-starves',
    clause: '§15.2',
    title: 'a waiting reader enters before writers that came later',
    ...needs(fifo, shared),
    async run(context) {
      const name = context.name();
      const waitMs = 20 * context.timing.slackMs;
      const holder = await writer(name)((await context.client()).locks).acquire();
      const waiting = await startWaitingFor(context, reader(name), { waitMs });
      const later = await startWaitingFor(context, writer(name), { waitMs });
      await holder.release();
      const read = await waiting.lease;
      assert.equal(later.settled(), undefined, 'a later writer overtook the reader or held beside it');
      await read.release();
      await (await later.lease).release();
    },
  },
  {
    id: 'shared/neighbours-enter-together',
    clause: '§15.2',
    title:
      'when a writer releases, all readers at the head enter at once, each with a token of its own, and the writer behind them does not',
    ...needs(fifo, shared),
    async run(context) {
      const name = context.name();
      const waitMs = 20 * context.timing.slackMs;
      const holder = await writer(name)((await context.client()).locks).acquire();
      const waiting = [];
      for (let index = 0; index < 3; index += 1)
        waiting.push(await startWaitingFor(context, reader(name), { waitMs }));
      const behind = await startWaitingFor(context, writer(name), { waitMs });
      const last = await startWaitingFor(context, reader(name), { waitMs });
      await holder.release();
      const entered: Lease[] = await Promise.all(waiting.map(({ lease }) => lease));
      assert.equal(behind.settled(), undefined);
      assert.equal(last.settled(), undefined, 'a reader behind the writer entered before it');
      const tokens = entered.map(({ fencingToken }) => fencingToken);
      if (behind.backend.capabilities.fencing !== 'none') assertAbove(holder.fencingToken, tokens);
      await Promise.all(entered.map((lease) => lease.release()));
      await (await behind.lease).release();
      await (await last.lease).release();
    },
  },
  {
    id: 'shared/neighbours-of-one-client-have-tokens-of-their-own',
    clause: '§15.8',
    title:
      'readers of one client that are granted in one step, by a release or a downgrade, have tokens that rise in the order of the queue',
    ...needs(fencing, strictOrder, fifo, shared),
    async run(context) {
      const { locks } = await context.client();
      for (const leave of ['release', 'downgrade'] as const) {
        const name = context.name(leave);
        const holder = await locks.readWriteLock(name).write.acquire();
        const waiting = await startWaitingTogether(context, reader(name), 4, { waitMs: 60_000 });
        await holder[leave]();
        const entered = await Promise.all(waiting);
        assertRising([holder, ...entered].map(({ fencingToken }) => fencingToken));
        await Promise.all(entered.map((lease) => lease.release()));
        if (leave === 'downgrade') await holder.release();
      }
    },
  },
  {
    id: 'shared/who-gives-up-lets-others-through',
    clause: '§7.2',
    title: 'when a waiting writer gives up, the readers behind it enter beside the reader that holds',
    ...needs(fifo, shared),
    async run(context) {
      const name = context.name();
      const { slackMs, idleGapMs } = context.timing;
      const inside = await reader(name)((await context.client()).locks).acquire();
      const abort = new AbortController();
      const quitter = await startWaitingFor(context, writer(name), { waitMs: 60_000, signal: abort.signal });
      watch(quitter.lease);
      const held = await startWaitingFor(context, reader(name), { waitMs: 60_000 });
      abort.abort(new Error('enough'));
      await granted(context, held, idleGapMs + 5 * slackMs);
      await assert.rejects(quitter.lease, /enough/);
      await (await held.lease).release();
      await inside.release();
    },
  },
  {
    id: 'shared/last-reader-wakes-the-writer',
    clause: '§7.3',
    title: 'in many rounds the last reader wakes the waiting writer, and the writer wakes all readers',
    ...needs(fifo, shared),
    async run(context) {
      const name = context.name();
      const waitMs = 60_000;
      const clients = [
        await context.client({ waitMs }),
        await context.client({ waitMs }),
        await context.client({ waitMs }),
      ];
      const elapsed = context.stopwatch();
      let acquires = 0;
      await Promise.all(
        clients.map(async ({ locks }, index) => {
          for (const round of roundsUpTo(40)) {
            const lock = (round + index) % 3 === 0 ? writer(name)(locks) : reader(name)(locks);
            const lease = await lock.acquire();
            await new Promise((resolve) => setImmediate(resolve));
            await lease.release();
            acquires += 1;
          }
        }),
      );
      // A lost wake-up costs one fallback check: the bound is so low that many of them break it.
      const bound = acquires * context.timing.slackMs;
      assert.ok(elapsed() < bound, `it took ${Math.round(elapsed())} ms, more than ${bound}`);
    },
  },
];
