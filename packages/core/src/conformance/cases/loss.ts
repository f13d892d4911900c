import assert from 'node:assert/strict';
import { type ConformanceCase, noHook } from '../case.ts';
import { forceRelease, leaseTenure, needs, processes } from '../needs.ts';
import { holdersOf } from '../raw.ts';

/** How and when a holder is told that its lease was lost. */
const HOUR_MS = 3_600_000;

export const lossCases: readonly ConformanceCase[] = [
  {
    id: 'loss/force-release-is-told',
    clause: '§8.3',
    title: 'a holder whose lease was released by force is told within one renewal',
    ...needs(forceRelease),
    async run(stage) {
      const name = stage.name();
      const ttlMs = stage.livingTtlMs * 2;
      const [holder, operator] = [await stage.client({ ttlMs }), await stage.client()];
      const lease = await holder.locks.lock(name).acquire();
      const { signal } = lease;
      await operator.locks.forceRelease(name);
      await stage.until('the holder is told', () => signal.aborted, ttlMs / 3 + 3 * stage.timing.slackMs);
      assert.equal(signal.reason.code, 'LOCK_LOST');
      assert.equal(signal.reason.reason, 'force-released');
      assert.equal(lease.validForMs, 0);
      assert.deepEqual(await holdersOf(operator.backend, name), [], 'it was renewed into being');
      await assert.rejects(lease.release(), { code: 'LOCK_LOST' });
    },
  },
  {
    id: 'loss/eviction-is-told',
    clause: '§8.3',
    title:
      'a holder whose hold was deleted from the store is told within one renewal, and nothing recreates it',
    missing: (_, harness) => (harness.faults?.evict === undefined ? noHook('faults.evict') : undefined),
    async run(stage) {
      const name = stage.name();
      const ttlMs = stage.livingTtlMs * 2;
      const { backend, locks } = await stage.client({ ttlMs });
      const lease = await locks.lock(name).acquire();
      const { signal } = lease;
      await stage.harness.faults?.evict?.(name);
      await stage.until('the holder is told', () => signal.aborted, ttlMs / 3 + 3 * stage.timing.slackMs);
      assert.equal(signal.reason.code, 'LOCK_LOST');
      assert.ok(
        !['expired', 'unconfirmed'].includes(signal.reason.reason),
        `the reason is ${signal.reason.reason}`,
      );
      assert.deepEqual(await holdersOf(backend, name), [], 'it was renewed into being');
      const next = await (await stage.client()).locks.lock(name).acquire();
      await assert.rejects(lease.release(), { code: 'LOCK_LOST' });
      next.assertValid();
      await next.release();
    },
  },
  {
    id: 'loss/release-is-no-loss',
    clause: '§8.4',
    title: 'the signal of a released lease does not abort, neither at the release nor later',
    async run(stage) {
      const ttlMs = stage.livingTtlMs;
      const { locks } = await stage.client({ ttlMs });
      const lease = await locks.lock(stage.name()).acquire();
      const { signal } = lease;
      await lease.release();
      assert.equal(signal.aborted, false);
      await stage.sleep(ttlMs + 20);
      assert.equal(signal.aborted, false);
      assert.equal(lease.signal, signal);
    },
  },
  {
    id: 'loss/frozen-process-is-told',
    clause: '§1.3',
    title: 'a process that was stopped for longer than its ttl finds its lease lost, and harms no successor',
    ...needs(processes, leaseTenure),
    async run(stage) {
      const name = stage.name();
      const ttlMs = stage.livingTtlMs;
      const child = await stage.child();
      const { backend, locks } = await stage.client({ waitMs: 30_000 });
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
      'a wall clock that is set back loses no lease; one set forward loses those that would have ended by it',
    ...needs(leaseTenure),
    async run(stage) {
      const child = await stage.child();
      const { id } = await child.acquire(stage.name(), { ttlMs: HOUR_MS / 60 });
      await child.setWallClock(-HOUR_MS);
      const before = await child.read(id);
      assert.equal(before.aborted, false);
      assert.ok(before.validForMs > HOUR_MS / 120, `set back, and it has ${before.validForMs} ms left`);
      await child.setWallClock(0);
      const after = await child.read(id);
      assert.deepEqual([after.validForMs, after.assertion, after.aborted], [0, 'LOCK_LOST', true]);
      const again = await child.acquire(stage.name(), { ttlMs: HOUR_MS / 60 });
      const { validForMs } = await child.read(again.id);
      assert.ok(
        validForMs > HOUR_MS / 120,
        `taken after it was set forward, and it has ${validForMs} ms left`,
      );
    },
  },
  {
    id: 'loss/blocked-loop-reads-the-loss',
    clause: '§1.3',
    title:
      'whatever is read after an event loop was blocked for longer than the ttl says lost, before any timer ran',
    ...needs(leaseTenure),
    async run(stage) {
      const ttlMs = stage.livingTtlMs;
      const child = await stage.child();
      const { id } = await child.acquire(stage.name(), { ttlMs });
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
    async run(stage) {
      const ttlMs = stage.livingTtlMs;
      const child = await stage.child();
      const { id } = await child.acquire(stage.name(), { ttlMs });
      assert.equal(await child.abortedAfterBlock(id, ttlMs + 50), true);
    },
  },
  {
    id: 'loss/blocked-loop-tells-before-the-next-holds',
    clause: '§8.2',
    title:
      'a signal that was stored before the event loop was blocked has aborted when the next one here holds',
    ...needs(leaseTenure),
    async run(stage) {
      const ttlMs = stage.livingTtlMs;
      const child = await stage.child();
      const { id } = await child.acquire(stage.name(), { ttlMs, renewal: 'manual' });
      assert.equal(await child.abortedBeforeNext(id, ttlMs + 50), true);
    },
  },
];
