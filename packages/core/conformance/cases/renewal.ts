import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { isLockError } from '../../src/errors.ts';
import type { Lease } from '../../src/lease.ts';
import type { ConformanceCase } from '../case.ts';
import { leaseTenure, needs } from '../needs.ts';
import { assertEndsByItself, holdersOf } from '../raw.ts';
import { RenewalLog } from '../renewal-log.ts';
import { SafetyViolation } from '../safety-violation.ts';
import type { CaseContext } from '../case-context.ts';
import { startWaiting } from '../waiter.ts';

/** Cases about what renews a lease, how often, and until when. */
export const renewalCases: readonly ConformanceCase[] = [
  {
    id: 'renewal/keeps-a-lease-alive',
    clause: '§4.2',
    title: 'a lease is renewed for several ttls, also while others wait for it',
    ...needs(leaseTenure),
    async run(context) {
      const name = context.name();
      const ttlMs = context.livingTtlMs;
      const log = new RenewalLog();
      const { backend, locks } = await context.client({ ttlMs, wrap: log.wrap });
      const lease = await locks.lock(name).acquire();
      const waiter = await startWaiting(context, name, { waitMs: 30_000 });
      await context.until(
        'it was renewed five times',
        () => log.of(lease.acquisitionId).length >= 5,
        4 * ttlMs,
      );
      lease.assertValid();
      assert.equal(lease.signal.aborted, false);
      assert.deepEqual(await holdersOf(backend, name), [lease.acquisitionId]);
      assert.equal(waiter.settled(), undefined);
      await lease.release();
      await (await waiter.lease).release();
    },
  },
  {
    id: 'renewal/manual-is-left-alone',
    clause: '§4.3',
    title: 'with renewal manual nothing but lease.renew() renews, and the lease expires',
    ...needs(leaseTenure),
    async run(context) {
      const { ttlMs } = context.timing;
      const log = new RenewalLog();
      const { locks } = await context.client({ ttlMs, wrap: log.wrap });
      const lease = await locks.lock(context.name()).acquire({ renewal: 'manual' });
      // On a busy machine the answer may have come late: then the lease was renewed before it was delivered (docs/spec.md §1.4).
      const before = log.of(lease.acquisitionId).length;
      await context.until('the lease is lost', () => lease.validForMs === 0);
      assert.equal(log.of(lease.acquisitionId).length, before);
      await assert.rejects(lease.renew(), { code: 'LOCK_LOST', reason: 'expired' });
      assert.equal(log.of(lease.acquisitionId).length, before, 'a lost lease was renewed');
    },
  },
  {
    id: 'renewal/renew-pushes-the-end',
    clause: '§1.7',
    title: 'lease.renew() sets the end to its ttl from now, for the holder and in the store',
    ...needs(leaseTenure),
    async run(context) {
      const name = context.name();
      const { locks } = await context.client({ renewal: 'manual' });
      const lease = await locks.lock(name).acquire({ ttlMs: 20_000 });
      const other = await context.client();
      const expect = async (least: number, most: number): Promise<void> => {
        assert.ok(
          lease.validForMs > least && lease.validForMs <= most,
          `the lease says ${lease.validForMs} ms`,
        );
        const [holder] = (await other.locks.inspect(name)).holders;
        // Where the store does not show the end, other clients show it below.
        const left = holder?.expiresInMs ?? most;
        assert.ok(left > least && left <= most + context.stepMs, `the store has ${left} ms`);
      };
      await expect(0, 20_000);
      await lease.renew(60_000);
      await expect(30_000, 60_000);
      await lease.renew();
      await expect(30_000, 60_000);
      await lease.renew(20_000);
      await expect(0, 20_000);
      await lease.release();
      await Promise.all([pushedOut(context), pulledIn(context)]);
    },
  },
  {
    id: 'renewal/new-ttl-stays',
    clause: '§1.7',
    title: 'a ttl given to lease.renew() also applies to the automatic renewals after it',
    ...needs(leaseTenure),
    async run(context) {
      const ttlMs = context.livingTtlMs;
      const log = new RenewalLog();
      const { locks } = await context.client({ ttlMs: 60_000, wrap: log.wrap });
      const lease = await locks.lock(context.name()).acquire();
      await lease.renew(ttlMs);
      await context.until(
        'it was renewed twice more',
        () => log.of(lease.acquisitionId).length >= 3,
        3 * ttlMs,
      );
      const { stepMs } = locks.capabilities.ttl;
      for (const { item } of log.of(lease.acquisitionId)) {
        assert.ok(item.ttlMs >= ttlMs && item.ttlMs < ttlMs + stepMs, `renewed by ${item.ttlMs} ms`);
      }
      await lease.release();
    },
  },
  {
    id: 'renewal/one-call-for-many',
    clause: '§4.4',
    title: 'one call renews many leases',
    ...needs(leaseTenure),
    async run(context) {
      const ttlMs = context.inSteps(context.livingTtlMs * 1.5);
      const log = new RenewalLog();
      const { locks } = await context.client({ ttlMs, wrap: log.wrap });
      const leases = await Promise.all(
        Array.from({ length: 24 }, () => locks.lock(context.name()).acquire()),
      );
      const renewed = (): boolean => leases.every((lease) => log.of(lease.acquisitionId).length >= 1);
      await context.until('each was renewed', renewed, ttlMs);
      const largest = Math.max(...log.calls.map(({ items }) => items.length));
      assert.ok(largest >= 8, `${log.calls.length} calls renewed 24 leases, at most ${largest} at once`);
      await Promise.all(leases.map((lease) => lease.release()));
    },
  },
  {
    id: 'renewal/ends-at-max-hold',
    clause: '§4.2',
    title: 'automatic renewal stops after maxHoldMs, and the lease expires',
    ...needs(leaseTenure),
    async run(context) {
      const { slackMs } = context.timing;
      const ttlMs = context.livingTtlMs;
      const log = new RenewalLog();
      const { locks } = await context.client({ ttlMs, wrap: log.wrap });
      const lease = await locks.lock(context.name()).acquire({ maxHoldMs: ttlMs });
      const heldAt = performance.now();
      await context.until('the lease is lost', () => lease.validForMs === 0, 2 * ttlMs + 3 * slackMs);
      const renewals = log.of(lease.acquisitionId);
      assert.ok(renewals.length >= 1, 'it was never renewed');
      const last = Math.max(...renewals.map(({ sentAt }) => sentAt - heldAt));
      assert.ok(last <= ttlMs + 3 * slackMs, `renewed ${last} ms after the grant, maxHoldMs is ${ttlMs}`);
      await assert.rejects(lease.release(), { code: 'LOCK_LOST', reason: 'expired' });
    },
  },
  {
    id: 'renewal/slow-hold-is-reported-once',
    clause: '§4.6',
    title: 'a hold past twice its ttl is reported once on locks:slow-hold, and never with maxHoldMs',
    ...needs(leaseTenure),
    async run(context) {
      const ttlMs = context.livingTtlMs;
      const { locks } = await context.client({ ttlMs });
      const [slow, limited] = [context.name(), context.name()];
      const reported: { readonly name: string; readonly heldMs: number; readonly ttlMs: number }[] = [];
      const listen = (message: unknown): void => {
        const event = message as (typeof reported)[number];
        if (event.name === slow || event.name === limited) reported.push(event);
      };
      subscribe('locks:slow-hold', listen);
      try {
        const leases = [
          await locks.lock(slow).acquire(),
          await locks.lock(limited).acquire({ maxHoldMs: 60_000 }),
        ];
        await context.until(
          'the slow hold is reported',
          () => reported.length > 0,
          2 * ttlMs + 3 * context.timing.slackMs,
        );
        await context.sleep(ttlMs / 2);
        assert.deepEqual(
          reported.map(({ name }) => name),
          [slow],
        );
        assert.ok((reported[0]?.heldMs ?? 0) >= 2 * ttlMs);
        await Promise.all(leases.map((lease) => lease.release()));
      } finally {
        unsubscribe('locks:slow-hold', listen);
      }
    },
  },
];

/** Checks that a hold renewed with a longer ttl still excludes others when it would have ended without the renewal. */
async function pushedOut(context: CaseContext): Promise<void> {
  const ttlMs = 2 * context.timing.ttlMs;
  const { locks } = await context.client({ ttlMs, renewal: 'manual' });
  const other = await context.client();
  for (;;) {
    const name = context.name();
    const lease = await locks.lock(name).acquire();
    // A pause of this process ended the hold, not the renewal.
    if (!(await renewedBy(lease, 60_000))) continue;
    await context.sleep(ttlMs + 2 * context.timing.slackMs);
    const taken = await other.locks.lock(name).tryAcquire();
    if (taken !== undefined && lease.validForMs > 0) {
      throw new SafetyViolation('another entered though the lease was renewed by a minute');
    }
    if (taken !== undefined) continue;
    await lease.release();
    return;
  }
}

/** Checks that a hold renewed with a shorter ttl ends by then. */
async function pulledIn(context: CaseContext): Promise<void> {
  const { locks } = await context.client({ ttlMs: 60_000, renewal: 'manual' });
  await assertEndsByItself(context, async (_, name) => {
    const lease = await locks.lock(name).acquire();
    await lease.renew(2 * context.timing.ttlMs);
    return true;
  });
}

async function renewedBy(lease: Lease, ttlMs: number): Promise<boolean> {
  try {
    await lease.renew(ttlMs);
    return true;
  } catch (error) {
    if (isLockError(error, 'LOCK_LOST')) return false;
    throw error;
  }
}
