import assert from 'node:assert/strict';
import { isLockError } from '../../src/errors.ts';
import type { Lease } from '../../src/lease.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate } from '../delegate.ts';
import { leaseTenure, needs } from '../needs.ts';
import type { CaseContext } from '../case-context.ts';

/** A client whose releases the store answers with "not held", as after a loss that was not reported. */
async function withLosses(context: CaseContext): Promise<Awaited<ReturnType<CaseContext['client']>>> {
  return context.client({
    wrap: (backend) =>
      delegate(backend, {
        async release(grant, call) {
          await backend.release(grant, call);
          return 'not-held';
        },
      }),
  });
}

/** Cases about what a lease, `run` and disposal do after a release and after a loss. */
export const ownershipLeaseCases: readonly ConformanceCase[] = [
  {
    id: 'ownership/second-release-is-a-no-op',
    clause: '§3.2',
    title: 'a second release of a lease does nothing, and sends nothing',
    async run(context) {
      const name = context.name();
      let releases = 0;
      const { locks } = await context.client({
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
    id: 'ownership/release-after-loss-reports',
    clause: '§3.2',
    title: 'the release of a lost lease rejects with LOCK_LOST, whether the loss was known before or not',
    ...needs(leaseTenure),
    async run(context) {
      const { ttlMs } = context.timing;
      const { locks } = await context.client();
      const expired = await locks.lock(context.name()).acquire({ ttlMs, renewal: 'manual' });
      await context.until('the lease is lost', () => expired.validForMs === 0);
      await assert.rejects(expired.release(), { code: 'LOCK_LOST', reason: 'expired' });
      const unaware = await (await withLosses(context)).locks.lock(context.name()).acquire();
      await assert.rejects(unaware.release(), { code: 'LOCK_LOST', reason: 'force-released' });
      assert.ok(unaware.signal.aborted, 'the signal does not report the loss');
    },
  },
  {
    id: 'ownership/released-lease-is-not-valid',
    clause: '§3.3',
    title: 'a released lease is valid for 0 ms, and calls that need it are refused with LOCK_NOT_HELD',
    async run(context) {
      const { locks } = await context.client();
      const lease = await locks.lock(context.name()).acquire();
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
    async run(context) {
      const name = context.name();
      const [first, second] = [await context.client(), await context.client()];
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
    id: 'ownership/run-reports-the-loss',
    clause: '§3.5',
    title: 'run rejects with LOCK_LOST and the result when the lease was lost before the work had ended',
    async run(context) {
      const { locks } = await withLosses(context);
      await assert.rejects(
        locks.lock(context.name()).run(async () => 'sold'),
        { code: 'LOCK_LOST', result: 'sold' },
      );
    },
  },
  {
    id: 'ownership/work-error-wins-over-loss',
    clause: '§3.5',
    title: 'an error of the work is what run rejects with, though the lease was lost too',
    async run(context) {
      const { locks } = await withLosses(context);
      const thrown = new Error('the work failed');
      const run = locks.lock(context.name()).run(async () => {
        throw thrown;
      });
      await assert.rejects(run, (error) => error === thrown);
    },
  },
  {
    id: 'ownership/disposal-tells-the-loss',
    clause: '§3.4',
    title:
      'disposal of a lost lease throws LOCK_LOST, beside the error of the block; of a released lease it throws nothing',
    async run(context) {
      const { locks } = await withLosses(context);
      const block = async (work: (lease: Lease) => void | Promise<void>): Promise<void> => {
        await using lease = await locks.lock(context.name()).acquire();
        await work(lease);
      };
      await assert.rejects(
        block((lease) => lease.assertValid()),
        { code: 'LOCK_LOST' },
      );
      const thrown = new Error('the block failed');
      const failing = block(() => {
        throw thrown;
      });
      await assert.rejects(failing, ({ error, suppressed }) => {
        assert.equal(suppressed, thrown, 'the error of the block is hidden');
        return isLockError(error, 'LOCK_LOST');
      });
      await block((lease) => assert.rejects(lease.release(), { code: 'LOCK_LOST' }));
    },
  },
  {
    id: 'ownership/disposal-of-a-set-tells-the-loss',
    clause: '§3.4',
    title: 'disposal of a multi-lease throws LOCK_LOST when one of its leases was lost',
    async run(context) {
      const { locks } = await withLosses(context);
      const block = async (): Promise<void> => {
        const members = [1, 2].map(() => locks.lock(context.name()));
        await using set = await locks.all(members).acquire();
        set.assertValid();
      };
      await assert.rejects(block(), { code: 'LOCK_LOST' });
    },
  },
];
