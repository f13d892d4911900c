import assert from 'node:assert/strict';
import type { AcquireOptions } from '../../src/options.ts';
import { CallCounter } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate } from '../delegate.ts';
import { watch } from '../waiter.ts';

export const reentrancyHandleCases: readonly ConformanceCase[] = [
  {
    id: 'reentrancy/within-re-enters',
    clause: '§5.8',
    title: 'within re-enters explicitly; the hold is released with the last handle, in any order',
    async run(context) {
      const stranger = (await context.client()).locks;
      for (const order of ['inner first', 'outer first'] as const) {
        const calls = new CallCounter();
        const { locks } = await context.client({ wrap: calls.wrap });
        const lock = locks.lock(context.name());
        const outer = await lock.acquire();
        const inner = await lock.acquire({ within: outer });
        assert.deepEqual([outer.holdCount, inner.holdCount, calls.of('attempt')], [2, 2, 1]);
        assert.equal(inner.acquisitionId, outer.acquisitionId);
        assert.equal(inner.fencingToken, outer.fencingToken);
        const [first, last] = order === 'inner first' ? [inner, outer] : [outer, inner];
        await first.release();
        assert.equal(first.validForMs, 0);
        assert.throws(() => first.assertValid(), { code: 'LOCK_NOT_HELD' });
        last.assertValid();
        assert.equal(last.holdCount, 1);
        assert.equal(calls.of('release'), 0, order);
        assert.equal(
          await stranger.lock(lock.name).tryAcquire(),
          undefined,
          `${order}: the lock is free while a handle is left`,
        );
        // A second release of the same handle has no effect.
        await first.release();
        last.assertValid();
        await last.release();
        assert.equal(calls.of('release'), 1, order);
        const free = await stranger.lock(lock.name).tryAcquire();
        assert.ok(free, `${order}: the lock is not free after the last release`);
        await free.release();
      }
    },
  },
  {
    id: 'reentrancy/within-is-checked',
    clause: '§5.2',
    title: 'within refuses a lease that was released or lost, or that belongs to another resource or manager',
    async run(context) {
      const [mine, other] = [await context.client(), await context.client()];
      const lock = mine.locks.lock(context.name());
      const waitMs = context.timing.slackMs / 8;
      const refused = (within: unknown, code: string): Promise<void> =>
        assert.rejects(lock.acquire({ within: within as AcquireOptions['within'], waitMs }), { code });
      const lease = await lock.acquire();
      await refused({}, 'LOCK_INVALID_ARGUMENT');
      await refused('a lease', 'LOCK_INVALID_ARGUMENT');
      const otherResource = await mine.locks.lock(context.name()).acquire();
      await refused(otherResource, 'LOCK_INVALID_ARGUMENT');
      await otherResource.release();
      await assert.rejects(other.locks.lock(lock.name).acquire({ within: lease, waitMs }), {
        code: 'LOCK_INVALID_ARGUMENT',
      });
      assert.equal(lease.holdCount, 1);
      await lease.release();
      await refused(lease, 'LOCK_NOT_HELD');
      const { locks } = await context.client({
        wrap: (backend) =>
          delegate(backend, {
            renew: async (items) => items.map(() => ({ status: 'lost', reason: 'force-released' })),
          }),
      });
      const doomed = await locks.lock(lock.name).acquire();
      await assert.rejects(doomed.renew(), { code: 'LOCK_LOST' });
      await assert.rejects(locks.lock(lock.name).acquire({ within: doomed }), {
        code: 'LOCK_LOST',
        reason: 'force-released',
      });
    },
  },
  {
    id: 'reentrancy/local-wait-has-limits',
    clause: '§5.5',
    title: 'a wait for a turn among siblings obeys waitMs, signal and tryAcquire',
    async run(context) {
      const calls = new CallCounter();
      const { locks } = await context.client({ wrap: calls.wrap });
      const { slackMs } = context.timing;
      const lock = locks.lock(context.name());
      const parent = await lock.acquire();
      const child = await lock.acquire({ within: parent });
      assert.equal(await lock.tryAcquire({ within: parent }), undefined);
      const startedAt = performance.now();
      const elapsed = context.stopwatch();
      await assert.rejects(lock.acquire({ within: parent, waitMs: slackMs / 8 }), { code: 'LOCK_TIMEOUT' });
      const waitedMs = performance.now() - startedAt;
      assert.ok(waitedMs >= slackMs / 8 - 1 && elapsed() < 4 * slackMs, `it waited for ${waitedMs} ms`);
      const controller = new AbortController();
      const reason = new Error('enough');
      const aborted = lock.acquire({ within: parent, signal: controller.signal });
      watch(aborted);
      const next = lock.acquire({ within: parent, waitMs: 10 * slackMs });
      const waits = watch(next);
      controller.abort(reason);
      await assert.rejects(aborted, (error) => error === reason);
      assert.equal(waits.settled, false);
      await child.release();
      // The siblings that gave up are no longer in the queue.
      await context.until('the next sibling has its turn', () => waits.settled, slackMs);
      await (await next).release();
      assert.equal(parent.holdCount, 1);
      await parent.release();
      assert.equal(calls.of('attempt'), 1, 'a local wait called the store');
    },
  },
  {
    id: 'reentrancy/turn-that-came-too-late',
    clause: '§5.8',
    title: 'a sibling that gives up in the moment of its turn leaves again, and nothing stays held',
    async run(context) {
      const { locks } = await context.client();
      const lock = locks.lock(context.name());
      const parent = await lock.acquire();
      const child = await lock.acquire({ within: parent });
      const controller = new AbortController();
      const reason = new Error('enough');
      const late = lock.acquire({ within: parent, signal: controller.signal });
      watch(late);
      await context.sleep(1);
      controller.abort(reason);
      await Promise.all([child.release(), parent.release()]);
      await assert.rejects(late, (error) => error === reason);
      await context.until(
        'the lease is released',
        async () => (await lock.inspect()).holders.length === 0,
        context.timing.slackMs,
      );
    },
  },
];
