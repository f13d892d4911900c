import assert from 'node:assert/strict';
import type { LockManager } from '../../src/create-locks.ts';
import type { Lease } from '../../src/lease.ts';
import { CallCounter } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate } from '../delegate.ts';
import { assertExclusive, machineNow, type CriticalSection } from '../critical-section.ts';
import { watch } from '../waiter.ts';

/** Core sees every `run` from inside once a reentrant one has run: older versions of Node do it from then on only. */
async function seeRuns(locks: LockManager, name: string): Promise<void> {
  await locks.lock(name, { reentrant: true }).run(() => {});
}

export const reentrancyCases: readonly ConformanceCase[] = [
  {
    id: 'reentrancy/not-unless-asked',
    clause: '§5.5',
    title:
      'without opting in, run inside run is refused at once, whatever its waitMs, and the error says what nesting needs',
    async run(context) {
      const { locks } = await context.client({ waitMs: Number.POSITIVE_INFINITY });
      await seeRuns(locks, context.name());
      const lock = locks.lock(context.name());
      const refused = { code: 'LOCK_REENTRANT', message: /within.*reentrant/ };
      await lock.run(async (lease) => {
        await assert.rejects(
          lock.run(() => assert.fail('a nested run was let in')),
          refused,
        );
        await assert.rejects(lock.acquire(), refused);
        await assert.rejects(locks.all([lock, locks.lock(context.name())]).acquire(), refused);
        assert.equal(lease.holdCount, 1);
      });
      await locks.all([lock, locks.lock(context.name())]).run(() => assert.rejects(lock.acquire(), refused));
      await (await lock.acquire()).release();
    },
  },
  {
    id: 'reentrancy/run-inside-run',
    clause: '§5.2',
    title: 'with reentrant, run inside run re-enters: hold count 2, same token and id, no call to the store',
    async run(context) {
      const calls = new CallCounter();
      const { locks } = await context.client({
        wrap: calls.wrap,
        reentrant: true,
        waitMs: 10 * context.timing.slackMs,
      });
      const name = context.name();
      const other = (await context.client()).locks.lock(name);
      await locks.lock(name).run(async (outer) => {
        const before = calls.total;
        // The nested run uses another lock object of the same manager: the resource decides, not the object.
        const value = await locks.lock(name).run(async (inner) => {
          assert.deepEqual([outer.holdCount, inner.holdCount], [2, 2]);
          assert.equal(inner.fencingToken, outer.fencingToken);
          assert.equal(inner.acquisitionId, outer.acquisitionId);
          await Promise.resolve();
          return 'inner value';
        });
        assert.equal(value, 'inner value');
        assert.equal(outer.holdCount, 1);
        assert.equal(calls.total, before, 'a re-entry called the store');
        outer.assertValid();
        assert.equal(await other.tryAcquire(), undefined, 'the end of the inner run freed the lock');
      });
      const free = await other.tryAcquire();
      assert.ok(free, 'the end of the outer run did not free the lock');
      await free.release();
    },
  },
  {
    id: 'reentrancy/branches-take-turns',
    clause: '§5.3',
    title: 'branches of one scope exclude each other, but not the code of their parent',
    async run(context) {
      const { locks } = await context.client({ reentrant: true, waitMs: 10 * context.timing.slackMs });
      const lock = locks.lock(context.name());
      const sections: CriticalSection[] = [];
      let parentWorks: () => void = () => {};
      const parentWorked = new Promise<void>((resolve) => (parentWorks = resolve));
      await lock.run(async () => {
        const branch = (who: string) =>
          lock.run(async () => {
            const enteredAt = machineNow();
            await parentWorked;
            await context.sleep(context.random.between(0, 3));
            sections.push({ who, enteredAt, leftAt: machineNow() });
          });
        const branches = Promise.all(['one', 'two', 'three', 'four'].map(branch));
        await context.sleep(1);
        // The branch waits for this event of its parent: it would hang if an active child blocked its parent's code.
        parentWorks();
        await branches;
        await branch('five');
      });
      assert.equal(sections.length, 5);
      assertExclusive(sections, context.seed);
    },
  },
  {
    id: 'reentrancy/three-levels',
    clause: '§5.2',
    title: 'the hold count follows three nested levels in and out, with siblings one after the other',
    async run(context) {
      const { locks } = await context.client({ reentrant: true, waitMs: 10 * context.timing.slackMs });
      const name = context.name();
      const lock = locks.lock(name);
      const counts: number[] = [];
      const count = (lease: Lease): void => void counts.push(lease.holdCount);
      await lock.run(async (first) => {
        count(first);
        for (let sibling = 0; sibling < 2; sibling += 1) {
          await lock.run(async (second) => {
            count(second);
            await lock.run(async (third) => count(third));
            count(second);
          });
        }
        count(first);
        assert.equal((await locks.inspect(name)).holders.length, 1);
      });
      assert.deepEqual(counts, [1, 2, 3, 2, 2, 3, 2, 1]);
      assert.deepEqual((await locks.inspect(name)).holders, []);
    },
  },
  {
    id: 'reentrancy/detached-child',
    clause: '§5.4',
    title: 'a child that nobody awaits keeps the lock until it ends, and its parent does not hang',
    async run(context) {
      const { locks } = await context.client({ reentrant: true, waitMs: 10 * context.timing.slackMs });
      const name = context.name();
      const stranger = (await context.client()).locks.lock(name);
      const lock = locks.lock(name);
      let leave: () => void = () => {};
      let childIsIn = false;
      let child: Promise<void> | undefined;
      const parent = lock.run(async () => {
        child = lock.run(async (lease) => {
          childIsIn = true;
          await new Promise<void>((resolve) => (leave = resolve));
          lease.assertValid();
        });
        watch(child);
      });
      const parentRun = watch(parent);
      await context.until('the child is in', () => childIsIn);
      await context.sleep(context.timing.slackMs / 8);
      assert.equal(parentRun.settled, false, 'run settled while a child held the lock');
      assert.equal(await stranger.tryAcquire(), undefined, 'another client was granted beside the child');
      leave();
      await context.until('the parent settles', () => parentRun.settled, context.timing.slackMs);
      await Promise.all([parent, child]);
      const free = await stranger.tryAcquire();
      assert.ok(free, 'the lock was not released');
      await free.release();
    },
  },
  {
    id: 'reentrancy/queued-child-becomes-stranger',
    clause: '§5.4',
    title: 'a child that still queues when the scope closes acquires a lease of its own',
    async run(context) {
      const { locks } = await context.client({ reentrant: true, waitMs: 10 * context.timing.slackMs });
      const lock = locks.lock(context.name());
      const ids: string[] = [];
      let leave: () => void = () => {};
      const children: Promise<void>[] = [];
      const parent = lock.run(async (lease) => {
        ids.push(lease.acquisitionId);
        children.push(
          lock.run(async (first) => {
            ids.push(first.acquisitionId);
            await new Promise<void>((resolve) => (leave = resolve));
          }),
        );
        children.push(lock.run(async (second) => void ids.push(second.acquisitionId)));
        for (const child of children) watch(child);
        // The scope stays open long enough for both children to queue.
        await context.sleep(1);
      });
      watch(parent);
      await context.until('the first child is in', () => ids.length === 2);
      await context.sleep(context.timing.slackMs / 8);
      assert.equal(ids.length, 2, 'two children of one scope held the lock at a time');
      leave();
      await Promise.all([parent, ...children]);
      assert.equal(ids[1], ids[0]);
      assert.notEqual(ids[2], ids[0], 'a child re-entered after the scope had closed');
    },
  },
  {
    id: 'reentrancy/early-release-inside-run',
    clause: '§5.4',
    title: 'a handle released inside its own run while a child holds blocks neither siblings nor parent',
    async run(context) {
      const { locks } = await context.client({ reentrant: true, waitMs: 10 * context.timing.slackMs });
      const lock = locks.lock(context.name());
      let leave: () => void = () => {};
      const parent = lock.run(async () => {
        const middle = lock.run(async (lease) => {
          watch(lock.run(() => new Promise<void>((resolve) => (leave = resolve))));
          await context.sleep(1);
          await lease.release();
        });
        watch(middle);
        const sibling = lock.run(async () => 'the sibling had its turn', {
          waitMs: 4 * context.timing.slackMs,
        });
        watch(sibling);
        await context.sleep(3);
        leave();
        await middle;
        return await sibling;
      });
      const settled = watch(parent);
      await context.until('the parent settles', () => settled.settled, 2 * context.timing.slackMs);
      assert.equal(await parent, 'the sibling had its turn');
    },
  },
  {
    id: 'reentrancy/loss-on-every-level',
    clause: '§8.1',
    title: 'the loss of a lease is reported on every level of nested runs, and nobody re-enters any more',
    async run(context) {
      const { locks } = await context.client({
        reentrant: true,
        ttlMs: context.livingTtlMs,
        wrap: (backend) =>
          delegate(backend, {
            renew: async (items) => items.map(() => ({ status: 'lost', reason: 'taken-over' })),
          }),
      });
      const lock = locks.lock(context.name());
      const lost = { code: 'LOCK_LOST', reason: 'taken-over' };
      const outer = lock.run(async (first) => {
        const inner = lock.run(async (second) => {
          await context.until(
            'the signal of the inner level aborts',
            () => second.signal.aborted,
            context.livingTtlMs,
          );
          assert.equal(first.signal.aborted, true);
          assert.throws(() => first.assertValid(), lost);
          assert.throws(() => second.assertValid(), lost);
          await assert.rejects(lock.acquire({ within: second }), lost);
          return 'done';
        });
        await assert.rejects(inner, { ...lost, result: 'done' });
        return 'all done';
      });
      await assert.rejects(outer, { ...lost, result: 'all done' });
    },
  },
];
