import assert from 'node:assert/strict';
import { type ConformanceCase, noHook } from '../case.ts';
import { forceRelease, leaseTenure, needs, processes } from '../needs.ts';
import { holdersOf } from '../raw.ts';
import { granted, startWaiting } from '../waiter.ts';

/** Cases about how and when a holder learns that its lease was lost. */
const HOUR_MS = 3_600_000;

export const lossCases: readonly ConformanceCase[] = [
  {
    id: 'loss/force-release-is-reported',
    clause: '§8.3',
    title: 'the signal of a lease that was released by force aborts within one renewal',
    ...needs(forceRelease),
    async run(context) {
      const name = context.name();
      const ttlMs = context.livingTtlMs * 2;
      const [holder, operator] = [await context.client({ ttlMs }), await context.client()];
      const lease = await holder.locks.lock(name).acquire();
      const { signal } = lease;
      await operator.locks.forceRelease(name);
      await context.until(
        'the signal of the holder aborts',
        () => signal.aborted,
        ttlMs / 3 + 3 * context.timing.slackMs,
      );
      assert.equal(signal.reason.code, 'LOCK_LOST');
      assert.equal(signal.reason.reason, 'force-released');
      assert.equal(lease.validForMs, 0);
      assert.deepEqual(await holdersOf(operator.backend, name), [], 'a renewal created the hold again');
      await assert.rejects(lease.release(), { code: 'LOCK_LOST' });
    },
  },
  {
    id: 'loss/eviction-is-reported',
    clause: '§8.3',
    title:
      'the signal of a lease whose hold was deleted from the store aborts within one renewal, and nothing recreates the hold',
    missing: (_, harness) => (harness.faults?.evict === undefined ? noHook('faults.evict') : undefined),
    async run(context) {
      const name = context.name();
      const ttlMs = context.livingTtlMs * 2;
      const { backend, locks } = await context.client({ ttlMs });
      const lease = await locks.lock(name).acquire();
      const { signal } = lease;
      await context.harness.faults?.evict?.(name);
      await context.until(
        'the signal of the holder aborts',
        () => signal.aborted,
        ttlMs / 3 + 3 * context.timing.slackMs,
      );
      assert.equal(signal.reason.code, 'LOCK_LOST');
      assert.ok(
        !['expired', 'unconfirmed'].includes(signal.reason.reason),
        `the reason is ${signal.reason.reason}`,
      );
      assert.deepEqual(await holdersOf(backend, name), [], 'a renewal created the hold again');
      const next = await (await context.client()).locks.lock(name).acquire();
      await assert.rejects(lease.release(), { code: 'LOCK_LOST' });
      next.assertValid();
      await next.release();
    },
  },
  {
    id: 'loss/max-hold-ends-the-hold',
    clause: '§4.2',
    title:
      'a hold ends past its maxHoldMs, whatever its tenure: its holder is told before the next one holds, and other leases go on',
    async run(context) {
      const name = context.name();
      const ttlMs = context.livingTtlMs;
      const { slackMs, idleGapMs, ttlMs: maxHoldMs } = context.timing;
      const { locks } = await context.client({ ttlMs });
      const kept = await locks.lock(context.name()).acquire();
      const lease = await locks.lock(name).acquire({ maxHoldMs });
      const { signal } = lease;
      const waiter = await startWaiting(context, name, { waitMs: 60_000 });
      const next = await granted(context, waiter, maxHoldMs + ttlMs + idleGapMs + 3 * slackMs);
      assert.equal(signal.aborted, true, 'another client holds, and the holder was not told');
      assert.equal(signal.reason.reason, 'expired');
      assert.equal(lease.validForMs, 0);
      await assert.rejects(lease.release(), { code: 'LOCK_LOST', reason: 'expired' });
      next.assertValid();
      kept.assertValid();
      await Promise.all([next.release(), kept.release()]);
    },
  },
  {
    id: 'loss/release-is-no-loss',
    clause: '§8.4',
    title: 'the signal of a released lease does not abort, neither at the release nor later',
    async run(context) {
      const ttlMs = context.livingTtlMs;
      const { locks } = await context.client({ ttlMs });
      const lease = await locks.lock(context.name()).acquire();
      const { signal } = lease;
      await lease.release();
      assert.equal(signal.aborted, false);
      await context.sleep(ttlMs + 20);
      assert.equal(signal.aborted, false);
      assert.equal(lease.signal, signal);
    },
  },
  {
    id: 'loss/frozen-process-learns-the-loss',
    clause: '§1.3',
    title: 'a process that was stopped for longer than its ttl finds its lease lost, and harms no successor',
    ...needs(processes, leaseTenure),
    async run(context) {
      const name = context.name();
      const ttlMs = context.livingTtlMs;
      const child = await context.child();
      const { backend, locks } = await context.client({ waitMs: 30_000 });
      const frozen = await child.acquire(name, { ttlMs });
      child.freeze();
      const successor = await locks.lock(name).acquire();
      child.thaw();
      const reading = await child.read(frozen.id);
      assert.equal(reading.validForMs, 0);
      assert.equal(reading.assertion, 'LOCK_LOST');
      assert.equal(reading.aborted, true);
      await assert.rejects(child.renew(frozen.id), { code: 'LOCK_LOST' });
      await assert.rejects(child.release(frozen.id), { code: 'LOCK_LOST' });
      assert.deepEqual(await holdersOf(backend, name), [successor.acquisitionId]);
      successor.assertValid();
      await successor.release();
    },
  },
  {
    id: 'loss/wall-clock-is-moved',
    clause: '§1.1',
    title:
      'a wall clock that is set back loses no lease; one that is set forward loses the leases that would have ended by it',
    ...needs(leaseTenure),
    async run(context) {
      const child = await context.child();
      const { id } = await child.acquire(context.name(), { ttlMs: HOUR_MS / 60 });
      await child.setWallClock(-HOUR_MS);
      const before = await child.read(id);
      assert.equal(before.aborted, false);
      assert.ok(
        before.validForMs > HOUR_MS / 120,
        `the clock was set back, and the lease has ${before.validForMs} ms left`,
      );
      await child.setWallClock(0);
      const after = await child.read(id);
      assert.deepEqual([after.validForMs, after.assertion, after.aborted], [0, 'LOCK_LOST', true]);
      const again = await child.acquire(context.name(), { ttlMs: HOUR_MS / 60 });
      const { validForMs } = await child.read(again.id);
      assert.ok(
        validForMs > HOUR_MS / 120,
        `the lease was taken after the clock was set forward, and has ${validForMs} ms left`,
      );
    },
  },
  {
    id: 'loss/blocked-loop-reads-the-loss',
    clause: '§1.3',
    title:
      'after the event loop was blocked for longer than the ttl every property of the lease says lost, before any timer ran',
    ...needs(leaseTenure),
    async run(context) {
      const ttlMs = context.livingTtlMs;
      const child = await context.child();
      const { id } = await child.acquire(context.name(), { ttlMs });
      const reading = await child.readAfterBlock(id, ttlMs + 50);
      assert.deepEqual(
        { ...reading, holdCount: undefined },
        {
          validForMs: 0,
          holdCount: undefined,
          assertion: 'LOCK_LOST',
          aborted: true,
          reason: reading.reason,
        },
      );
      assert.ok(
        reading.reason === 'expired' || reading.reason === 'unconfirmed',
        `the reason is ${reading.reason}`,
      );
    },
  },
  {
    id: 'loss/blocked-loop-aborts-the-signal',
    clause: '§1.3',
    title: 'a signal that was stored before the event loop was blocked aborts in the next timer phase',
    ...needs(leaseTenure),
    async run(context) {
      const ttlMs = context.livingTtlMs;
      const child = await context.child();
      const { id } = await child.acquire(context.name(), { ttlMs });
      assert.equal(await child.abortedAfterBlock(id, ttlMs + 50), true);
    },
  },
  {
    id: 'loss/blocked-loop-reports-before-the-next-holds',
    clause: '§8.2',
    title:
      'a signal that was stored before the event loop was blocked has aborted when the next acquire of this process holds',
    ...needs(leaseTenure),
    async run(context) {
      const ttlMs = context.livingTtlMs;
      const child = await context.child();
      const { id } = await child.acquire(context.name(), { ttlMs, renewal: 'manual' });
      assert.equal(await child.abortedBeforeNext(id, ttlMs + 50), true);
    },
  },
];
