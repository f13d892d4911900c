import assert from 'node:assert/strict';
import type { Lease } from '../../src/lease.ts';
import type { ConformanceCase } from '../case.ts';
import type { Child } from '../child/child.ts';
import { fifo, needs, processes, waiters } from '../needs.ts';
import type { CaseContext } from '../case-context.ts';
import { granted, startWaiting, type Waiter, watch } from '../waiter.ts';

interface TwoWaiters {
  readonly name: string;
  readonly release: () => Promise<void>;
  /** The process of the first waiter, and its acquire. */
  readonly child: Child;
  readonly first: ReturnType<Child['acquire']>;
  /** The waiter behind it. */
  readonly second: Waiter;
}

/** Sets up a holder, a process that waits, and a waiter behind it. */
async function twoWaiters(context: CaseContext, ttlMs = context.livingTtlMs): Promise<TwoWaiters> {
  const name = context.name();
  const { slackMs, idleGapMs } = context.timing;
  const waitMs = 40 * slackMs + 4 * idleGapMs;
  const [{ locks }, child] = await Promise.all([context.client(), context.child()]);
  const holder = await locks.lock(name).acquire();
  const first = child.acquire(name, { ttlMs, waitMs, label: 'first' });
  watch(first);
  await context.untilWaiting(locks, name, 1);
  const second = await startWaiting(context, name, { waitMs, label: 'second' });
  return { name, release: () => holder.release(), child, first, second };
}

/** Checks that the next waiter is granted within the declared idle gap after the waiter whose turn it was died. */
function secondIsGranted(context: CaseContext, { second }: TwoWaiters): Promise<Lease> {
  const { slackMs, idleGapMs } = context.timing;
  return granted(context, second, idleGapMs + slackMs);
}

export const waitingDeathCases: readonly ConformanceCase[] = [
  {
    id: 'waiting/killed-waiter-is-passed-over',
    clause: '§7.7',
    title: 'a process that is killed while it waits does not delay the next waiters, and is never granted',
    ...needs(processes, fifo, waiters),
    async run(context) {
      const all = await twoWaiters(context);
      await all.child.kill();
      await all.release();
      await (await secondIsGranted(context, all)).release();
      const { name, second } = all;
      await context.until('nobody holds the lock and nobody waits', async () => {
        const { holders, waiters } = await second.locks.inspect(name);
        return holders.length + waiters.length === 0;
      });
      const free = await second.locks.lock(name).tryAcquire();
      assert.ok(free, 'the killed waiter blocks a free lock');
      await free.release();
    },
  },
  {
    id: 'waiting/frozen-waiter-is-passed-over',
    clause: '§7.7',
    title:
      'a process that has stood still for the idle gap is passed over when its turn comes; thawed, it waits for its next turn',
    ...needs(processes, fifo, waiters),
    async run(context) {
      const all = await twoWaiters(context);
      const waits = watch(all.first);
      all.child.freeze();
      await context.sleep(context.timing.idleGapMs);
      await all.release();
      const lease = await secondIsGranted(context, all);
      all.child.thaw();
      await context.sleep(context.timing.slackMs);
      assert.equal(
        waits.settled,
        false,
        'the thawed process counted itself as the holder beside another holder',
      );
      lease.assertValid();
      await lease.release();
      const { idleGapMs, slackMs } = context.timing;
      await context.until('the thawed process has its turn', () => waits.settled, idleGapMs + 2 * slackMs);
      await all.child.release((await all.first).id);
    },
  },
  {
    id: 'waiting/dead-after-the-hand-off',
    clause: '§7.7',
    title:
      'a process that dies with the lock that it was handed delays the next waiter for a ttl, as any holder',
    ...needs(processes, fifo, waiters),
    async run(context) {
      const { ttlMs, slackMs, idleGapMs } = context.timing;
      const all = await twoWaiters(context, ttlMs);
      all.child.freeze();
      await all.release();
      // The lock was handed off to the frozen process, which will never know, or is free for it to take.
      await all.child.kill();
      await (await granted(context, all.second, ttlMs + idleGapMs + slackMs)).release();
    },
  },
];
