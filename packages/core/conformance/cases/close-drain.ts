import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import { startWaiting, watch } from '../waiter.ts';

const closed = { code: 'LOCK_CLOSED' };

export const closeDrainCases: readonly ConformanceCase[] = [
  {
    id: 'close/drains',
    clause: '§12.5',
    title: 'close with drainMs refuses acquires and ends waits at once, and resolves after the last release',
    async run(context) {
      const name = context.name();
      const { slackMs } = context.timing;
      const ttlMs = context.livingTtlMs;
      const { locks: others } = await context.client();
      const holder = await others.lock(name).acquire();
      const waiter = await startWaiting(context, name, { waitMs: Number.POSITIVE_INFINITY });
      const { locks } = waiter;
      const lease = await locks.lock(context.name()).acquire({ ttlMs });
      const lock = locks.lock(context.name());
      const closing = locks.close({ drainMs: 60_000 });
      const closes = watch(closing);
      await assert.rejects(lock.acquire(), closed);
      await assert.rejects(lock.tryAcquire(), closed);
      await assert.rejects(locks.ping(), closed);
      await context.until('the wait ended', () => waiter.settled() !== undefined, slackMs);
      await assert.rejects(waiter.lease, closed);
      // The drain lasts longer than a lease without renewals would.
      await context.sleep(ttlMs + slackMs / 2);
      assert.equal(closes.settled, false, 'close did not wait for the release of the lease');
      lease.assertValid();
      assert.equal(await others.lock(lease.name).tryAcquire(), undefined);
      const child = await locks.lock(lease.name).acquire({ within: lease });
      await child.release();
      await lease.renew();
      await lease.release();
      await context.until('it closed', () => closes.settled, 1_000 + slackMs);
      await closing;
      const next = await others.lock(lease.name).tryAcquire();
      assert.ok(next, 'the lock was not released');
      await Promise.all([next.release(), holder.release()]);
    },
  },
  {
    id: 'close/drain-ends',
    clause: '§12.5',
    title: 'when drainMs is over, leases are lost with reason closed, and released',
    async run(context) {
      const name = context.name();
      const { slackMs } = context.timing;
      const { locks } = await context.client();
      const { locks: others } = await context.client();
      const lease = await locks.lock(name).acquire();
      const { signal } = lease;
      const closing = locks.close({ drainMs: slackMs });
      const closes = watch(closing);
      await context.sleep(slackMs / 2);
      assert.equal(signal.aborted, false, 'the lease was lost before drainMs was over');
      await context.until('it closed', () => closes.settled, 1_000 + 2 * slackMs);
      await closing;
      assert.throws(() => signal.throwIfAborted(), { code: 'LOCK_LOST', reason: 'closed' });
      const next = await others.lock(name).tryAcquire();
      assert.ok(next, 'the lock was not released');
      await next.release();
    },
  },
];
