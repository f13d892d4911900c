import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import { isLockError } from '../../src/errors.ts';
import { fencing, fifo, leaseTenure, needs, shared } from '../needs.ts';
import { EXCLUSIVE, grab, holdersOf, openCall, SHARED } from '../raw.ts';
import { granted, startWaitingFor } from '../waiter.ts';

export const sharedDowngradeCases: readonly ConformanceCase[] = [
  {
    id: 'shared/downgrade-lets-readers-in',
    clause: '§15.4',
    title: 'a writer that becomes a reader wakes the waiting readers, and holds together with them',
    ...needs(fifo, shared),
    async run(context) {
      const name = context.name();
      const { slackMs } = context.timing;
      const { locks } = await context.client();
      const lease = await locks.readWriteLock(name).write.acquire();
      const waiting = await startWaitingFor(context, (others) => others.readWriteLock(name).read, {
        waitMs: 60_000,
      });
      await lease.downgrade();
      assert.deepEqual(lease.mode, SHARED);
      await granted(context, waiting, 5 * slackMs);
      assert.ok(lease.validForMs > 0);
      assert.equal(await locks.lock(name).tryAcquire(), undefined, 'a writer entered beside two readers');
      await (await waiting.lease).release();
      assert.equal(await locks.lock(name).tryAcquire(), undefined, 'a writer entered beside a reader');
      await lease.renew();
      await lease.release();
      const next = await locks.lock(name).tryAcquire();
      assert.ok(next, 'a downgrade left a hold behind');
      await next.release();
    },
  },
  {
    id: 'shared/downgrade-lets-no-writer-in',
    clause: '§15.4',
    title:
      'a waiting writer at the head enters only after the downgraded lease was released, and blocks readers until then',
    ...needs(fifo, shared),
    async run(context) {
      const name = context.name();
      const waitMs = 60_000;
      const lease = await (await context.client()).locks.readWriteLock(name).write.acquire();
      const next = await startWaitingFor(context, (locks) => locks.lock(name), { waitMs });
      await lease.downgrade();
      assert.equal(await (await context.client()).locks.readWriteLock(name).read.tryAcquire(), undefined);
      await context.sleep(context.timing.slackMs / 4);
      assert.equal(next.settled(), undefined, 'a writer entered beside a reader');
      await lease.release();
      await (await next.lease).release();
    },
  },
  {
    id: 'shared/downgrade-keeps-the-token',
    clause: '§15.4',
    title: 'a downgrade keeps the token, and the next writer has a higher one',
    ...needs(shared, fencing),
    async run(context) {
      const name = context.name();
      const { locks } = await context.client();
      const lease = await locks.readWriteLock(name).write.acquire();
      const token = lease.fencingToken;
      await lease.downgrade();
      assert.equal(lease.fencingToken, token);
      const { holders } = await locks.inspect(name);
      assert.deepEqual(
        holders.map(({ acquisitionId, mode }) => [acquisitionId, mode.kind]),
        [[lease.acquisitionId, 'shared']],
      );
      await lease.release();
      const next = await locks.lock(name).acquire();
      assert.ok((next.fencingToken ?? 0n) > (token ?? 0n));
      await next.release();
    },
  },
  {
    id: 'shared/downgrade-can-be-repeated',
    clause: '§2.1',
    title: 'a repeated downgrade is answered with held; the former grant still renews and releases the lease',
    ...needs(shared),
    async run(context) {
      const name = context.name();
      const backend = await context.backend();
      const before = await grab(backend, name, 30_000, EXCLUSIVE);
      const downgrade = async (): Promise<string | undefined> =>
        (await backend.downgrade?.(before, openCall))?.status;
      assert.equal(await downgrade(), 'held');
      assert.equal(await downgrade(), 'held');
      const [renewalStatus] = await backend.renew([{ grant: before, ttlMs: 30_000 }], openCall);
      assert.equal(
        renewalStatus?.status,
        'held',
        'a renewal with the grant from before the downgrade was answered with lost',
      );
      assert.equal(await backend.release(before, openCall), 'released');
      assert.deepEqual(await holdersOf(backend, name), []);
      assert.equal(await downgrade(), 'lost');
      // The hold is abandoned, as core does where it had no answer.
      const other = await grab(backend, name, 30_000, EXCLUSIVE);
      await backend.downgrade?.(other, openCall);
      await backend.abandon(other.request, openCall);
      assert.deepEqual(await holdersOf(backend, name), []);
    },
  },
  {
    id: 'shared/downgrade-of-a-lost-lease',
    clause: '§15.4',
    title: 'a downgrade does not bring back an ended lease',
    ...needs(leaseTenure, shared),
    async run(context) {
      const name = context.name();
      const { ttlMs, slackMs } = context.timing;
      const backend = await context.backend();
      const old = await grab(backend, name, ttlMs, EXCLUSIVE);
      const reader = await (await context.client()).locks
        .readWriteLock(name)
        .read.acquire({ waitMs: 20 * slackMs });
      assert.equal((await backend.downgrade?.(old, openCall))?.status, 'lost');
      assert.deepEqual(await holdersOf(backend, name), [reader.acquisitionId]);
      await reader.release();
    },
  },
  {
    id: 'shared/a-writer-may-read',
    clause: '§5.6',
    title: 'a write lease is re-entered to read; reads are not upgraded, nor re-entered leases downgraded',
    ...needs(shared),
    async run(context) {
      const { locks } = await context.client();
      const { read, write } = locks.readWriteLock(context.name());
      const writing = await write.acquire();
      const nested = await read.acquire({ within: writing });
      assert.equal(writing.holdCount, 2);
      await assert.rejects(writing.downgrade(), (error) => isLockError(error, 'LOCK_REENTRANT'));
      await nested.release();
      await writing.downgrade();
      await assert.rejects(write.acquire({ within: writing }), (error) =>
        isLockError(error, 'LOCK_REENTRANT'),
      );
      const again = await read.acquire({ within: writing });
      await again.release();
      await writing.release();
      await assert.rejects(writing.downgrade(), (error) => isLockError(error, 'LOCK_NOT_HELD'));
    },
  },
  {
    id: 'shared/upgrade-inside-run-is-refused',
    clause: '§5.6',
    title:
      'a reader that waits for the writer of its own lock is refused at once, inside run and without within',
    ...needs(shared),
    async run(context) {
      const { locks } = await context.client({ waitMs: Number.POSITIVE_INFINITY });
      // Before Node 24 core sees runs from inside only then.
      await locks.lock(context.name(), { reentrant: true }).run(() => {});
      const { read, write } = locks.readWriteLock(context.name());
      await read.run(() => assert.rejects(write.acquire(), { code: 'LOCK_REENTRANT' }));
      await (await write.acquire()).release();
    },
  },
];
