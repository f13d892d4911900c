import assert from 'node:assert/strict';
import { isLockError } from '../../src/errors.ts';
import type { ConformanceCase } from '../case.ts';
import { maxWaiters, needs, processes, waiters } from '../needs.ts';
import { exclusiveRequest, grab, holdersOf, openCall } from '../raw.ts';
import { startWaiting, watch } from '../waiter.ts';

const HOLD_MS = 60_000;
const CLIENTS = 4;
const ACQUIRES = 3;
const LIMIT = 5;

/** Queues with a limit. */
export const waitingLimitCases: readonly ConformanceCase[] = [
  {
    id: 'waiting/more-than-the-limit-are-refused',
    clause: '§7.9',
    title: 'an acquire that finds as many waiters as it allows is refused at once, and leaves nothing behind',
    ...needs(maxWaiters),
    async run(context) {
      const name = context.name();
      const { locks, backend } = await context.client({ ttlMs: HOLD_MS, waitMs: HOLD_MS });
      const limited = (most: number) => locks.lock(name).acquire({ maxWaiters: most });
      const lease = await limited(0);
      await assert.rejects(limited(0), isRefusal);
      const [first, second] = [
        await startWaiting(context, name, { waitMs: HOLD_MS, maxWaiters: 1 }),
        await startWaiting(context, name, { waitMs: HOLD_MS, maxWaiters: 2 }),
      ];
      await assert.rejects(limited(2), isRefusal);
      await assert.rejects(limited(1), isRefusal);
      const third = await startWaiting(context, name, { waitMs: HOLD_MS, maxWaiters: 3 });
      await lease.release();
      await (await first.lease).release();
      await (await second.lease).release();
      await (await third.lease).release();
      assert.deepEqual(await holdersOf(backend, name), []);
      await (await limited(0)).release();
    },
  },
  {
    id: 'waiting/who-waits-is-not-refused',
    clause: '§7.9',
    title: 'the repeated attempt of a waiter is contended, also where as many wait as it allows',
    ...needs(maxWaiters),
    async run(context) {
      const name = context.name();
      const backend = await context.backend();
      const held = await grab(backend, name, HOLD_MS);
      const request = { ...exclusiveRequest(name, HOLD_MS), maxWaiters: 1 };
      for (const _ of [1, 2, 3])
        assert.equal((await backend.attempt(request, true, openCall)).status, 'contended');
      const late = { ...exclusiveRequest(name, HOLD_MS), maxWaiters: 1 };
      assert.equal((await backend.attempt(late, true, openCall)).status, 'full');
      assert.equal((await backend.attempt(late, false, openCall)).status, 'contended');
      await backend.abandon(request, openCall);
      await backend.release(held, openCall);
      await backend.release(await grab(backend, name, HOLD_MS), openCall);
    },
  },
  {
    id: 'waiting/dead-waiters-do-not-count',
    clause: '§7.9',
    title:
      'a waiter whose process was killed takes no place in a queue with a limit, also while the holder holds on',
    ...needs(maxWaiters, processes, waiters),
    async run(context) {
      const name = context.name();
      const [{ locks, backend }, child] = await Promise.all([context.client(), context.child()]);
      const lease = await locks.lock(name).acquire({ ttlMs: HOLD_MS });
      watch(child.acquire(name, { ttlMs: HOLD_MS, waitMs: HOLD_MS }));
      await context.untilWaiting(locks, name, 1);
      const mayWait = async (): Promise<boolean> => {
        const request = { ...exclusiveRequest(name, HOLD_MS), maxWaiters: 1 };
        const { status } = await backend.attempt(request, true, openCall);
        if (status === 'full') return false;
        assert.equal(status, 'contended');
        await backend.abandon(request, openCall);
        return true;
      };
      assert.equal(await mayWait(), false, 'one waits already');
      await child.kill();
      const { idleGapMs, slackMs } = context.timing;
      await context.until('the killed waiter does not count', mayWait, idleGapMs + slackMs);
      await lease.release();
    },
  },
  {
    id: 'waiting/the-limit-holds-in-a-storm',
    clause: '§7.9',
    title: 'of many that come at once as many wait as the limit allows; the others are refused',
    ...needs(maxWaiters),
    async run(context) {
      const name = context.name();
      const holder = await context.client();
      const lease = await holder.locks.lock(name).acquire({ ttlMs: HOLD_MS });
      const clients = await Promise.all(Array.from({ length: CLIENTS }, () => context.client()));
      let [refused, entered] = [0, 0];
      const all = clients.flatMap(({ locks }) =>
        Array.from({ length: ACQUIRES }, async () => {
          const limited = locks.lock(name, { ttlMs: HOLD_MS, waitMs: HOLD_MS, maxWaiters: LIMIT });
          try {
            await limited.run(() => (entered += 1));
          } catch (error) {
            assert.ok(isRefusal(error), String(error));
            refused += 1;
          }
        }),
      );
      const expected = CLIENTS * ACQUIRES - LIMIT;
      await context.until(
        () => `${expected} are refused: ${refused} are, and ${entered} have entered`,
        () => refused >= expected,
      );
      await lease.release();
      await Promise.all(all);
      assert.deepEqual([refused, entered], [expected, LIMIT]);
    },
  },
];

function isRefusal(error: unknown): boolean {
  return isLockError(error, 'LOCK_QUEUE_FULL');
}
