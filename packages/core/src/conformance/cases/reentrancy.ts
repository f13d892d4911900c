import assert from 'node:assert/strict';
import type { Lease } from '../../lease.ts';
import { Traffic } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate } from '../delegate.ts';
import { assertExclusive, machineNow, type Stay } from '../history.ts';
import { watch } from '../waiter.ts';

export const reentrancyCases: readonly ConformanceCase[] = [
  {
    id: 'reentrancy/not-unless-asked',
    clause: '§5.1',
    title: 'without opting in, run inside run waits like a stranger, and its timeout says what nesting needs',
    async run(stage) {
      const { locks } = await stage.client();
      const lock = locks.lock(stage.name());
      const waitMs = stage.busyMs;
      await lock.run(async (lease) => {
        const nested = lock.run(() => assert.fail('a nested run got in'), { waitMs });
        await assert.rejects(nested, { code: 'LOCK_TIMEOUT', message: /within.*reentrant/ });
        assert.equal(lease.holdCount, 1);
      });
    },
  },
  {
    id: 'reentrancy/run-inside-run',
    clause: '§5.2',
    title: 'with reentrant, run inside run re-enters: hold count 2, same token and id, no call to the store',
    async run(stage) {
      const traffic = new Traffic();
      const { locks } = await stage.client({
        wrap: traffic.wrap,
        reentrant: true,
        waitMs: 10 * stage.timing.slackMs,
      });
      const name = stage.name();
      const other = (await stage.client()).locks.lock(name);
      await locks.lock(name).run(async (outer) => {
        const before = traffic.total;
        // Another lock object of the same manager: the resource counts, not the object.
        const value = await locks.lock(name).run(async (inner) => {
          assert.deepEqual([outer.holdCount, inner.holdCount], [2, 2]);
          assert.equal(inner.fencingToken, outer.fencingToken);
          assert.equal(inner.acquisitionId, outer.acquisitionId);
          await Promise.resolve();
          return 'inner value';
        });
        assert.equal(value, 'inner value');
        assert.equal(outer.holdCount, 1);
        assert.equal(traffic.total, before, 'a re-entry talked to the store');
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
    title: 'branches of one scope exclude each other, and not the code of their parent',
    async run(stage) {
      const { locks } = await stage.client({ reentrant: true, waitMs: 10 * stage.timing.slackMs });
      const lock = locks.lock(stage.name());
      const stays: Stay[] = [];
      let parentWorks: () => void = () => {};
      const parentWorked = new Promise<void>((resolve) => (parentWorks = resolve));
      await lock.run(async () => {
        const branch = (who: string) =>
          lock.run(async () => {
            const enteredAt = machineNow();
            await parentWorked;
            await stage.sleep(stage.random.between(0, 3));
            stays.push({ who, enteredAt, leftAt: machineNow() });
          });
        const branches = Promise.all(['one', 'two', 'three', 'four'].map(branch));
        await stage.sleep(1);
        // A branch waits for this line: it would be stuck if the parent were kept out while a child is in.
        parentWorks();
        await branches;
        await branch('and one after the other');
      });
      assert.equal(stays.length, 5);
      assertExclusive(stays, stage.seed);
    },
  },
  {
    id: 'reentrancy/three-levels',
    clause: '§5.2',
    title: 'a hold count follows three levels in and out, with siblings one after the other',
    async run(stage) {
      const { locks } = await stage.client({ reentrant: true, waitMs: 10 * stage.timing.slackMs });
      const name = stage.name();
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
    title: 'a child that nobody awaits keeps the lock until it has left, and does not hang its parent',
    async run(stage) {
      const { locks } = await stage.client({ reentrant: true, waitMs: 10 * stage.timing.slackMs });
      const name = stage.name();
      const stranger = (await stage.client()).locks.lock(name);
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
      await stage.until('the child is in', () => childIsIn);
      await stage.sleep(stage.timing.slackMs / 8);
      assert.equal(parentRun.settled, false, 'run settled while a child was inside');
      assert.equal(await stranger.tryAcquire(), undefined, 'a stranger got in beside the child');
      leave();
      await stage.until('the parent settles', () => parentRun.settled, stage.timing.slackMs);
      await Promise.all([parent, child]);
      const free = await stranger.tryAcquire();
      assert.ok(free, 'nobody gave the lock back');
      await free.release();
    },
  },
  {
    id: 'reentrancy/queued-child-becomes-stranger',
    clause: '§5.4',
    title: 'a child that still queues when the scope closes acquires as a stranger, on a lease of its own',
    async run(stage) {
      const { locks } = await stage.client({ reentrant: true, waitMs: 10 * stage.timing.slackMs });
      const lock = locks.lock(stage.name());
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
        // Long enough for both to come and ask.
        await stage.sleep(1);
      });
      watch(parent);
      await stage.until('the first child is in', () => ids.length === 2);
      await stage.sleep(stage.timing.slackMs / 8);
      assert.equal(ids.length, 2, 'two children of one scope were in at a time');
      leave();
      await Promise.all([parent, ...children]);
      assert.equal(ids[1], ids[0]);
      assert.notEqual(ids[2], ids[0], 'a child came in after the scope had closed');
    },
  },
  {
    id: 'reentrancy/early-release-inside-run',
    clause: '§5.4',
    title:
      'a handle given back inside its own run, with a child still in, strands neither siblings nor parent',
    async run(stage) {
      const { locks } = await stage.client({ reentrant: true, waitMs: 10 * stage.timing.slackMs });
      const lock = locks.lock(stage.name());
      let leave: () => void = () => {};
      const parent = lock.run(async () => {
        const middle = lock.run(async (lease) => {
          watch(lock.run(() => new Promise<void>((resolve) => (leave = resolve))));
          await stage.sleep(1);
          await lease.release();
        });
        watch(middle);
        const sibling = lock.run(async () => 'the sibling had its turn', {
          waitMs: 4 * stage.timing.slackMs,
        });
        watch(sibling);
        await stage.sleep(3);
        leave();
        await middle;
        return await sibling;
      });
      const settled = watch(parent);
      await stage.until('the parent settles', () => settled.settled, 2 * stage.timing.slackMs);
      assert.equal(await parent, 'the sibling had its turn');
    },
  },
  {
    id: 'reentrancy/loss-on-every-level',
    clause: '§8.1',
    title: 'the loss of a lease is told on every level of nested runs, and nobody comes in any more',
    async run(stage) {
      const { locks } = await stage.client({
        reentrant: true,
        ttlMs: stage.livingTtlMs,
        wrap: (backend) =>
          delegate(backend, {
            renew: async (items) => items.map(() => ({ status: 'lost', reason: 'taken-over' })),
          }),
      });
      const lock = locks.lock(stage.name());
      const lost = { code: 'LOCK_LOST', reason: 'taken-over' };
      const outer = lock.run(async (first) => {
        const inner = lock.run(async (second) => {
          await stage.until('the inner level is told', () => second.signal.aborted, stage.livingTtlMs);
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
