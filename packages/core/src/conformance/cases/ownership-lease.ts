import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ConformanceCase } from '../case.ts';
import { delegate } from '../delegate.ts';
import { leaseTenure, needs } from '../needs.ts';
import type { Stage } from '../stage.ts';

/** A client whose next release the store answers with "not held": as after a loss that nobody told. */
async function withLosses(stage: Stage): Promise<Awaited<ReturnType<Stage['client']>>> {
  return stage.client({
    wrap: (backend) =>
      delegate(backend, {
        async release(grant, call) {
          await backend.release(grant, call);
          return 'not-held';
        },
      }),
  });
}

/** What a lease, `run` and disposal say after a release and after a loss. */
export const ownershipLeaseCases: readonly ConformanceCase[] = [
  {
    id: 'ownership/second-release-is-a-no-op',
    clause: '§3.2',
    title: 'a second release of a lease does nothing, and sends nothing',
    async run(stage) {
      const name = stage.name();
      let releases = 0;
      const { locks } = await stage.client({
        wrap: (backend) =>
          delegate(backend, {
            release(grant, call) {
              releases += 1;
              return backend.release(grant, call);
            },
          }),
      });
      const lease = await locks.lock(name).acquire();
      await Promise.all([lease.release(), lease.release()]);
      const next = await locks.lock(name).acquire();
      await lease.release();
      assert.equal(releases, 1);
      next.assertValid();
      await next.release();
    },
  },
  {
    id: 'ownership/release-after-loss-tells',
    clause: '§3.2',
    title:
      'the release of a lease that was lost rejects with LOCK_LOST, whether it was known or comes out only then',
    ...needs(leaseTenure),
    async run(stage) {
      const { ttlMs } = stage.timing;
      const { locks } = await stage.client();
      const expired = await locks.lock(stage.name()).acquire({ ttlMs, renewal: 'manual' });
      await stage.until('the lease is lost', () => expired.validForMs === 0);
      await assert.rejects(expired.release(), { code: 'LOCK_LOST', reason: 'expired' });
      const unaware = await (await withLosses(stage)).locks.lock(stage.name()).acquire();
      await assert.rejects(unaware.release(), { code: 'LOCK_LOST', reason: 'force-released' });
      assert.ok(unaware.signal.aborted, 'the signal does not tell the loss');
    },
  },
  {
    id: 'ownership/released-lease-is-not-valid',
    clause: '§3.3',
    title: 'after the release a lease is valid for 0 ms, and whatever needs it is refused with LOCK_NOT_HELD',
    async run(stage) {
      const { locks } = await stage.client();
      const lease = await locks.lock(stage.name()).acquire();
      assert.ok(lease.validForMs > 0);
      const released = lease.release();
      assert.equal(lease.validForMs, 0);
      assert.equal(lease.holdCount, 0);
      assert.throws(() => lease.assertValid(), { code: 'LOCK_NOT_HELD' });
      await assert.rejects(lease.renew(), { code: 'LOCK_NOT_HELD' });
      await released;
      assert.throws(() => lease.assertValid(), { code: 'LOCK_NOT_HELD' });
    },
  },
  {
    id: 'ownership/run-releases-whatever-happens',
    clause: '§3.5',
    title: 'run gives what the work returned or threw, and the resource is free afterwards',
    async run(stage) {
      const name = stage.name();
      const [first, second] = [await stage.client(), await stage.client()];
      const lock = first.locks.lock(name);
      assert.equal(await lock.run(async (lease) => (lease.assertValid(), 42)), 42);
      const thrown = new Error('the work failed');
      await assert.rejects(
        lock.run(() => {
          throw thrown;
        }),
        (error) => error === thrown,
      );
      const next = await second.locks.lock(name).tryAcquire();
      assert.ok(next, 'run is over, and the resource is not free');
      await next.release();
    },
  },
  {
    id: 'ownership/run-tells-the-loss',
    clause: '§3.5',
    title: 'run rejects with LOCK_LOST and the result when the lease was lost before the work had ended',
    async run(stage) {
      const { locks } = await withLosses(stage);
      await assert.rejects(
        locks.lock(stage.name()).run(async () => 'sold'),
        { code: 'LOCK_LOST', result: 'sold' },
      );
    },
  },
  {
    id: 'ownership/work-error-wins-over-loss',
    clause: '§3.5',
    title: 'an error of the work is what run rejects with, though the lease was lost too',
    async run(stage) {
      const { locks } = await withLosses(stage);
      const thrown = new Error('the work failed');
      const run = locks.lock(stage.name()).run(async () => {
        throw thrown;
      });
      await assert.rejects(run, (error) => error === thrown);
    },
  },
  {
    id: 'ownership/disposal-hides-nothing',
    clause: '§3.4',
    title: 'disposal of a lost lease reports on locks:release-failed and lets the error of the block through',
    async run(stage) {
      const name = stage.name();
      const { locks } = await withLosses(stage);
      const reports: unknown[] = [];
      const listen = (message: unknown): void => {
        if ((message as { resource?: string }).resource === name) reports.push(message);
      };
      subscribe('locks:release-failed', listen);
      try {
        const thrown = new Error('the block failed');
        const block = async (): Promise<void> => {
          await using lease = await locks.lock(name).acquire();
          lease.assertValid();
          throw thrown;
        };
        await assert.rejects(block(), (error) => error === thrown);
        assert.equal(reports.length, 1);
        assert.equal((reports[0] as { error?: { code?: string } }).error?.code, 'LOCK_LOST');
      } finally {
        unsubscribe('locks:release-failed', listen);
      }
    },
  },
];
