import assert from 'node:assert/strict';
import type { Lease } from '../../src/lease.ts';
import type { ConformanceCase } from '../case.ts';
import type { CaseContext } from '../case-context.ts';
import { delegate } from '../delegate.ts';
import { leaseTenure, needs, permits, processes, shared, steal } from '../needs.ts';
import { startWaiting, startWaitingFor, type Waiter } from '../waiter.ts';

/** A waiter learns from its last request, which may be as old as this, since when its lease counts. */
const OLDEST_REQUEST_MS = 1_200;
/** Just before that request is repeated: then a lease that was waited for is at its oldest. */
const WAITED_MS = 950;
const TTL_MS = 12_000;

/** Cases about how much of its ttl is left of a lease that was waited for. */
export const expiryHandOffCases: readonly ConformanceCase[] = [
  {
    id: 'expiry/hand-off-lasts-its-ttl',
    clause: '§1.4',
    title:
      'a lease that was waited for is valid for its ttl, in the process that released and in another client',
    ...needs(leaseTenure),
    async run(context) {
      const name = context.name();
      const { locks } = await context.client({ ttlMs: TTL_MS, waitMs: 40_000 });
      const holder = await locks.lock(name).acquire();
      const beside = locks.lock(name).acquire();
      const behind = await startWaiting(context, name, { ttlMs: TTL_MS, waitMs: 40_000 });
      await context.sleep(WAITED_MS);
      await holder.release();
      const leave = async (lease: Lease): Promise<void> => {
        assertWhole(context, lease);
        await context.sleep(WAITED_MS);
        await lease.release();
      };
      await Promise.all([beside.then(leave), behind.lease.then(leave)]);
    },
  },
  {
    id: 'expiry/hand-off-behind-a-steal-lasts-its-ttl',
    clause: '§1.4',
    title:
      'a lease that was waited for, also while another acquisition stole the resource, is valid for its ttl',
    ...needs(leaseTenure, steal),
    async run(context) {
      const name = context.name();
      const { locks } = await context.client({ ttlMs: TTL_MS });
      const holder = await locks.lock(name).acquire();
      const waiter = await startWaiting(context, name, { ttlMs: TTL_MS, waitMs: 40_000 });
      const thief = await locks.lock(name).acquire({ steal: true });
      await context.sleep(WAITED_MS);
      await thief.release();
      assertWhole(context, await waiter.lease);
      await assert.rejects(holder.release(), { code: 'LOCK_LOST' });
    },
  },
  {
    id: 'expiry/hand-off-to-readers-lasts-its-ttl',
    clause: '§1.4',
    title: 'readers that waited for a writer to leave, or to become a reader, are valid for their ttl',
    ...needs(leaseTenure, shared),
    async run(context) {
      const { locks } = await context.client({ ttlMs: TTL_MS });
      const rounds = (['release', 'downgrade'] as const).map(async (leave) => {
        const name = context.name();
        const writer = await locks.readWriteLock(name).write.acquire();
        const readers = await startMany(context, (manager) => manager.readWriteLock(name).read);
        await context.sleep(WAITED_MS);
        await writer[leave]();
        for (const { lease } of readers) assertWhole(context, await lease);
      });
      await Promise.all(rounds);
    },
  },
  {
    id: 'expiry/hand-off-of-permits-lasts-its-ttl',
    clause: '§1.4',
    title: 'permits that were waited for are valid for their ttl',
    ...needs(leaseTenure, permits),
    async run(context) {
      const name = context.name();
      const { locks } = await context.client({ ttlMs: TTL_MS });
      const all = await locks.semaphore(name, 2).acquire({ weight: 2 });
      const waiters = await startMany(context, (manager) => manager.semaphore(name, 2));
      await context.sleep(WAITED_MS);
      await all.release();
      for (const { lease } of waiters) assertWhole(context, await lease);
    },
  },
  {
    id: 'expiry/late-answer-lasts-its-ttl',
    clause: '§1.4',
    title: 'a lease whose answer took half of its ttl, though nobody else wanted it, is valid for its ttl',
    ...needs(leaseTenure),
    async run(context) {
      const ttlMs = context.livingTtlMs;
      const { locks } = await context.client({
        ttlMs,
        wrap: (backend) =>
          delegate(backend, {
            async attempt(...args) {
              const answer = await backend.attempt(...args);
              await context.sleep(ttlMs / 2);
              return answer;
            },
          }),
      });
      for (let round = 1; ; round += 1) {
        const lease = await locks.lock(context.name()).acquire({ waitMs: 4 * ttlMs });
        const { validForMs } = lease;
        await lease.release();
        if (validForMs > (2 / 3) * ttlMs) return;
        // On a busy machine the renewal may be answered late, too.
        assert.ok(round < 3, `${validForMs} of ${ttlMs} ms were left`);
      }
    },
  },
  {
    id: 'expiry/stall-after-a-hand-off',
    clause: '§1.4',
    title:
      'an event loop that stands still for half a ttl right after a lease was granted that was waited for loses nothing',
    ...needs(leaseTenure, processes),
    async run(context) {
      const ttlMs = context.inSteps(Math.max(3_000, context.livingTtlMs));
      const [{ locks }, child] = await Promise.all([context.client(), context.child()]);
      const elsewhere = async (name: string): Promise<() => Promise<void>> => {
        const lease = await locks.lock(name).acquire();
        return () => lease.release();
      };
      const inItsProcess = async (name: string): Promise<() => Promise<void>> => {
        const { id } = await child.acquire(name);
        return () => child.release(id);
      };
      for (const hold of [elsewhere, inItsProcess]) {
        const name = context.name();
        const release = await hold(name);
        const waiting = child.acquire(name, { ttlMs, waitMs: 40_000 });
        await context.sleep(WAITED_MS);
        await release();
        const { id } = await waiting;
        const { validForMs, assertion } = await child.readAfterBlock(id, ttlMs / 2);
        assert.equal(assertion, undefined, `${validForMs} of ${ttlMs} ms were left`);
        await child.release(id);
      }
    },
  },
];

/** Two waiters for locks of a kind that lets both hold. */
function startMany(
  context: CaseContext,
  lockOf: Parameters<typeof startWaitingFor>[1],
): Promise<readonly Waiter[]> {
  const options = { ttlMs: TTL_MS, waitMs: 40_000 };
  return Promise.all([1, 2].map(() => startWaitingFor(context, lockOf, options)));
}

function assertWhole({ timing }: CaseContext, { validForMs }: Lease): void {
  const least = TTL_MS - OLDEST_REQUEST_MS - timing.slackMs;
  assert.ok(validForMs >= least, `${validForMs} ms of a ttl of ${TTL_MS} ms were left, and not ${least}`);
}
