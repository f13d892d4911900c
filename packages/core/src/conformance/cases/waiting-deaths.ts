import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import type { Child } from '../child/child.ts';
import { fifo, needs, processes, waiters } from '../needs.ts';
import type { Stage } from '../stage.ts';
import { startWaiting, type Waiter, watch } from '../waiter.ts';

interface Line {
  readonly name: string;
  readonly release: () => Promise<void>;
  /** The process that waits first, and its acquire. */
  readonly child: Child;
  readonly first: ReturnType<Child['acquire']>;
  /** The one behind it. */
  readonly second: Waiter;
}

/** A holder, a process that waits, and a waiter behind it. */
async function line(stage: Stage): Promise<Line> {
  const name = stage.name();
  const { slackMs, idleGapMs } = stage.timing;
  const waitMs = 40 * slackMs + 4 * idleGapMs;
  const [{ locks }, child] = await Promise.all([stage.client(), stage.child()]);
  const holder = await locks.lock(name).acquire();
  const first = child.acquire(name, { waitMs, label: 'first' });
  watch(first);
  await stage.untilWaiting(locks, name, 1);
  const second = await startWaiting(stage, name, { waitMs, label: 'second' });
  return { name, release: () => holder.release(), child, first, second };
}

/** After the death of the waiter whose turn it is the next one gets in within the declared gap. */
async function secondGetsIn(stage: Stage, { second }: Line): Promise<void> {
  const { slackMs, idleGapMs } = stage.timing;
  await stage.until('the next waiter is granted', () => second.settled() !== undefined, idleGapMs + slackMs);
}

export const waitingDeathCases: readonly ConformanceCase[] = [
  {
    id: 'waiting/killed-waiter-is-passed-over',
    clause: '§7.7',
    title: 'a process that is killed while it waits does not hold up those behind it, and is never granted',
    ...needs(processes, fifo, waiters),
    async run(stage) {
      const all = await line(stage);
      await all.child.kill();
      await all.release();
      await secondGetsIn(stage, all);
      await (await all.second.lease).release();
      const { name, second } = all;
      await stage.until('nobody holds it and nobody waits', async () => {
        const { holders, waiters } = await second.locks.inspect(name);
        return holders.length + waiters.length === 0;
      });
      const free = await second.locks.lock(name).tryAcquire();
      assert.ok(free, 'it stands in the way of a free lock');
      await free.release();
    },
  },
  {
    id: 'waiting/frozen-waiter-is-passed-over',
    clause: '§7.7',
    title: 'a frozen process is passed over when its turn comes; thawed, it waits for its next turn',
    ...needs(processes, fifo, waiters),
    async run(stage) {
      const all = await line(stage);
      const waits = watch(all.first);
      all.child.freeze();
      await all.release();
      await secondGetsIn(stage, all);
      const lease = await all.second.lease;
      all.child.thaw();
      await stage.sleep(stage.timing.slackMs);
      assert.equal(waits.settled, false, 'the thawed process was told that it holds while another does');
      lease.assertValid();
      await lease.release();
      const { idleGapMs, slackMs } = stage.timing;
      await stage.until('the thawed process has its turn', () => waits.settled, idleGapMs + 2 * slackMs);
      await all.child.release((await all.first).id);
    },
  },
  {
    id: 'waiting/dead-between-hand-off-and-claim',
    clause: '§7.7',
    title: 'a process that dies after its turn came, and before it knew, does not hold up the next',
    ...needs(processes, fifo, waiters),
    async run(stage) {
      const all = await line(stage);
      all.child.freeze();
      await all.release();
      // Now the turn is the frozen process's, and it will never know.
      await all.child.kill();
      await secondGetsIn(stage, all);
      await (await all.second.lease).release();
    },
  },
];
