import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import type { CaseContext } from '../case-context.ts';
import type { Child } from '../child/child.ts';
import { delegate, NoReply } from '../delegate.ts';
import { holdersOf } from '../raw.ts';
import { succeedsOnce } from '../rounds.ts';

/** How often core repeats a failed release, in milliseconds. */
const REPEATED_MS = 1_000;

/** A process whose core waits for the answer to a release for no longer than the slack of the store, so that a short stall outlasts it. */
async function hastyChild(context: CaseContext): Promise<Child> {
  const child = await context.child();
  await child.close();
  await child.open({ releaseBudgetMs: context.timing.slackMs });
  return child;
}

/** Cases of an event loop that stands still while the store is healthy, and of releases without an answer. */
export const stallCases: readonly ConformanceCase[] = [
  {
    id: 'faults/stall-after-a-release',
    clause: '§2.5',
    title:
      'a release resolves, and frees the lock, though the event loop then stands still for longer than its budget',
    async run(context) {
      const { slackMs } = context.timing;
      const child = await hastyChild(context);
      for (const isUnderWay of [false, true]) {
        await succeedsOnce(async () => {
          const name = context.name();
          const { id } = await child.acquire(name);
          await child.releaseAndBlock(id, 1.5 * slackMs, isUnderWay);
          assert.ok(await child.tryAcquire(name), 'the release resolved, and the lock is held');
        });
      }
    },
  },
  {
    id: 'faults/stall-after-an-acquire',
    clause: '§7.5',
    title:
      'an acquire of a free lock succeeds, though the event loop then stands still for longer than its waitMs',
    async run(context) {
      const { slackMs } = context.timing;
      const child = await hastyChild(context);
      // A first call opens the connection, for which a new client needs more time.
      await child.release((await child.acquire(context.name())).id);
      await succeedsOnce(async () => {
        const { id } = await child.acquireAndBlock(context.name(), { waitMs: slackMs }, 1.5 * slackMs);
        await child.release(id);
      });
    },
  },
  {
    id: 'idempotence/failed-release-goes-on',
    clause: '§2.5',
    title: 'a release without an answer rejects, and is repeated until the store is back',
    async run(context) {
      const name = context.name();
      let isAway = true;
      const { backend, locks } = await context.client({
        ttlMs: 60_000,
        wrap: (real) =>
          delegate(real, {
            release: () => Promise.reject(new NoReply('release')),
            abandon: (request, call) =>
              isAway ? Promise.reject(new NoReply('abandon')) : real.abandon(request, call),
          }),
      });
      const lease = await locks.lock(name).acquire();
      await assert.rejects(lease.release(), { code: 'LOCK_BACKEND' });
      assert.deepEqual(await holdersOf(backend, name), [lease.acquisitionId]);
      isAway = false;
      await context.until(
        'the store that is back hears of the release',
        async () => (await holdersOf(backend, name)).length === 0,
        2 * REPEATED_MS + context.timing.slackMs,
      );
    },
  },
];
