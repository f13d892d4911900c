import assert from 'node:assert/strict';
import type { AcquireOptions } from '../../options.ts';
import { Traffic } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate } from '../delegate.ts';
import { watch } from '../waiter.ts';

export const reentrancyHandleCases: readonly ConformanceCase[] = [
  {
    id: 'reentrancy/within-re-enters',
    clause: '§5.8',
    title: 'within re-enters explicitly; the store is released when the last handle is, in whatever order',
    async run(stage) {
      const stranger = (await stage.client()).locks;
      for (const order of ['inner first', 'outer first'] as const) {
        const traffic = new Traffic();
        const { locks } = await stage.client({ wrap: traffic.wrap });
        const lock = locks.lock(stage.name());
        const outer = await lock.acquire();
        const inner = await lock.acquire({ within: outer });
        assert.deepEqual([outer.holdCount, inner.holdCount, traffic.of('attempt')], [2, 2, 1]);
        assert.equal(inner.acquisitionId, outer.acquisitionId);
        assert.equal(inner.fencingToken, outer.fencingToken);
        const [first, last] = order === 'inner first' ? [inner, outer] : [outer, inner];
        await first.release();
        assert.equal(first.validForMs, 0);
        assert.throws(() => first.assertValid(), { code: 'LOCK_NOT_HELD' });
        last.assertValid();
        assert.equal(last.holdCount, 1);
        assert.equal(traffic.of('release'), 0, order);
        assert.equal(
          await stranger.lock(lock.name).tryAcquire(),
          undefined,
          `${order}: free while a handle is left`,
        );
        // A second release of the same handle counts for nothing.
        await first.release();
        last.assertValid();
        await last.release();
        assert.equal(traffic.of('release'), 1, order);
        const free = await stranger.lock(lock.name).tryAcquire();
        assert.ok(free, `${order}: not free after the last release`);
        await free.release();
      }
    },
  },
  {
    id: 'reentrancy/within-is-checked',
    clause: '§5.2',
    title: 'within refuses a lease that was released, was lost, or is of another resource or manager',
    async run(stage) {
      const [mine, other] = [await stage.client(), await stage.client()];
      const lock = mine.locks.lock(stage.name());
      const waitMs = stage.timing.slackMs / 8;
      const refused = (within: unknown, code: string): Promise<void> =>
        assert.rejects(lock.acquire({ within: within as AcquireOptions['within'], waitMs }), { code });
      const lease = await lock.acquire();
      await refused({}, 'LOCK_INVALID_ARGUMENT');
      await refused('a lease', 'LOCK_INVALID_ARGUMENT');
      const otherResource = await mine.locks.lock(stage.name()).acquire();
      await refused(otherResource, 'LOCK_INVALID_ARGUMENT');
      await otherResource.release();
      await assert.rejects(other.locks.lock(lock.name).acquire({ within: lease, waitMs }), {
        code: 'LOCK_INVALID_ARGUMENT',
      });
      assert.equal(lease.holdCount, 1);
      await lease.release();
      await refused(lease, 'LOCK_NOT_HELD');
      const { locks } = await stage.client({
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
    async run(stage) {
      const traffic = new Traffic();
      const { locks } = await stage.client({ wrap: traffic.wrap });
      const { slackMs } = stage.timing;
      const lock = locks.lock(stage.name());
      const parent = await lock.acquire();
      const child = await lock.acquire({ within: parent });
      assert.equal(await lock.tryAcquire({ within: parent }), undefined);
      const startedAt = performance.now();
      const elapsed = stage.stopwatch();
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
      // Those who gave up no longer stand in the line.
      await stage.until('the next sibling has its turn', () => waits.settled, slackMs);
      await (await next).release();
      assert.equal(parent.holdCount, 1);
      await parent.release();
      assert.equal(traffic.of('attempt'), 1, 'a local wait talked to the store');
    },
  },
  {
    id: 'reentrancy/turn-that-came-too-late',
    clause: '§5.8',
    title: 'a sibling that gives up in the moment in which it is let in leaves again, and nothing stays held',
    async run(stage) {
      const { locks } = await stage.client();
      const lock = locks.lock(stage.name());
      const parent = await lock.acquire();
      const child = await lock.acquire({ within: parent });
      const controller = new AbortController();
      const reason = new Error('enough');
      const late = lock.acquire({ within: parent, signal: controller.signal });
      watch(late);
      await stage.sleep(1);
      controller.abort(reason);
      await Promise.all([child.release(), parent.release()]);
      await assert.rejects(late, (error) => error === reason);
      await stage.until(
        'the lease is given back',
        async () => (await lock.inspect()).holders.length === 0,
        stage.timing.slackMs,
      );
    },
  },
];
