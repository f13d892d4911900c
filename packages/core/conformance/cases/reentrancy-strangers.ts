import assert from 'node:assert/strict';
import { AsyncResource } from 'node:async_hooks';
import type { Lease } from '../../src/lease.ts';
import type { ConformanceCase } from '../case.ts';
import type { CaseContext } from '../case-context.ts';
import { watch } from '../waiter.ts';

/** A task queue as libraries have it: the caller that adds a task also runs those of others, in its own context. */
class TaskQueue {
  readonly #tasks: (() => Promise<unknown>)[] = [];

  add<T>(task: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#tasks.push(() => task().then(resolve, reject));
    });
  }

  async drain(): Promise<void> {
    for (let task = this.#tasks.shift(); task !== undefined; task = this.#tasks.shift()) await task();
  }
}

type Wrapped = (task: () => Promise<Lease | string>) => () => Promise<Lease | string>;

/** Runs a task of other code in the context of a scope. Gives whether the task was let in. */
async function strangerGetsIn(context: CaseContext, reentrant: boolean, wrap: Wrapped): Promise<boolean> {
  const { locks } = await context.client({ reentrant });
  const lock = locks.lock(context.name());
  const queue = new TaskQueue();
  let inside = false;
  const task = async (): Promise<string> => {
    try {
      await lock.run(async () => void (inside = true), { waitMs: context.busyMs });
      return 'in';
    } catch (error) {
      // The holder waits for the queue: where core sees that, it refuses the wait.
      assert.match((error as { code: string }).code, /^LOCK_(?:TIMEOUT|REENTRANT)$/);
      return 'out';
    }
  };
  const added = queue.add(wrap(task));
  await lock.run(() => queue.drain());
  assert.equal(await added, inside ? 'in' : 'out');
  return inside;
}

export const reentrancyStrangerCases: readonly ConformanceCase[] = [
  {
    id: 'reentrancy/queued-task-of-a-stranger',
    clause: '§5.1',
    title: 'other code that a queue runs in the context of a holder does not re-enter by default',
    async run(context) {
      assert.equal(await strangerGetsIn(context, false, (task) => task), false);
    },
  },
  {
    id: 'reentrancy/bound-task-of-a-stranger',
    clause: '§5.7',
    title: 'a task that was bound to its own context does not re-enter either, where the lock is reentrant',
    async run(context) {
      assert.equal(await strangerGetsIn(context, true, (task) => AsyncResource.bind(task)), false);
      // The same task without binding is let in: therefore reentrancy is opt-in, and binding is advised.
      assert.equal(await strangerGetsIn(context, true, (task) => task), true);
    },
  },
  {
    id: 'reentrancy/detached-work-is-a-stranger',
    clause: '§5.7',
    title: 'work in locks.detached does not re-enter, whatever scope it is called in',
    async run(context) {
      const { locks } = await context.client({ reentrant: true, waitMs: 10 * context.timing.slackMs });
      const lock = locks.lock(context.name());
      await lock.run(async (lease) => {
        const work = () =>
          lock.run(() => assert.fail('work outside the scope was let in'), { waitMs: context.busyMs });
        await assert.rejects(locks.detached(work), { code: 'LOCK_TIMEOUT' });
        assert.equal(
          locks.detached(() => 'the value of the work'),
          'the value of the work',
        );
        assert.equal(lease.holdCount, 1);
      });
    },
  },
  {
    id: 'reentrancy/handle-inside-run',
    clause: '§5.2',
    title: 'an acquire inside run without within does not re-enter, and the error says why',
    async run(context) {
      const { locks } = await context.client({ reentrant: true, waitMs: 10 * context.timing.slackMs });
      const lock = locks.lock(context.name());
      const waitMs = context.busyMs;
      await lock.run(async () => {
        assert.equal(await lock.tryAcquire(), undefined);
        const handle = lock.acquire({ waitMs });
        // A handle that was granted nevertheless must be released, or this run would wait for it.
        watch(handle.then((lease) => lease.release()));
        await assert.rejects(handle, { code: 'LOCK_REENTRANT', message: /within/ });
      });
    },
  },
  {
    id: 'reentrancy/other-managers-are-strangers',
    clause: '§5.2',
    title: 'a scope lets in neither another manager nor another resource',
    async run(context) {
      const [one, two] = [
        await context.client({ reentrant: true, waitMs: 10 * context.timing.slackMs }),
        // Else a wait that lasts for long ends as a deadlock (docs/spec.md §5.10).
        await context.client({ reentrant: true, deadlockAfterMs: Number.POSITIVE_INFINITY }),
      ];
      const name = context.name();
      await one.locks.lock(name).run(async (lease) => {
        const nested = two.locks
          .lock(name)
          .run(() => assert.fail('another manager was let in'), { waitMs: context.busyMs });
        await assert.rejects(nested, { code: 'LOCK_TIMEOUT' });
        await one.locks.lock(`${name} other`).run(async (other) => {
          assert.notEqual(other.acquisitionId, lease.acquisitionId);
          assert.deepEqual([other.holdCount, lease.holdCount], [1, 1]);
        });
      });
    },
  },
  {
    id: 'reentrancy/cycle-is-refused',
    clause: '§5.5',
    title: 'a local wait that would wait for itself is refused with LOCK_REENTRANT, before it times out',
    async run(context) {
      const { locks } = await context.client({ reentrant: true, waitMs: 10 * context.timing.slackMs });
      const name = context.name();
      const [a, b] = [locks.lock(`${name} a`), locks.lock(`${name} b`)];
      // A branch whose turn it is waits for a turn in its parent's scope.
      await a.run(async (parent) => {
        await a.run(async () => {
          const entry = a.acquire({ within: parent });
          watch(entry.then((lease) => lease.release()));
          await assert.rejects(entry, { code: 'LOCK_REENTRANT' });
        });
      });
      // Two branches, each active in the scope whose turn the other waits for.
      const outer = a.run(() =>
        b.run(async () => {
          const branch = (first: typeof a, second: typeof a) =>
            first.run(async () => {
              await context.sleep(2);
              await second.run(async () => {});
            });
          const branches = [branch(a, b), branch(b, a)];
          return Promise.allSettled(branches);
        }),
      );
      const settled = watch(outer);
      await context.until('both branches are settled', () => settled.settled, 12 * context.timing.slackMs);
      const refused = (await outer).filter(({ status }) => status === 'rejected');
      assert.equal(refused.length, 1, 'one of the two must be refused, and then the other is let in');
      assert.equal((refused[0] as PromiseRejectedResult).reason.code, 'LOCK_REENTRANT');
    },
  },
  {
    id: 'reentrancy/circle-is-refused',
    clause: '§5.9',
    title:
      'of two waits for what the other holds the last is refused with LOCK_DEADLOCK, and the first goes on',
    async run(context) {
      const { locks } = await context.client({ waitMs: 20 * context.timing.slackMs });
      const name = context.name();
      const [a, b] = [locks.lock(`${name} a`), locks.lock(`${name} b`)];
      let here = 0;
      const member = (first: typeof a, second: typeof a) =>
        first.run(async () => {
          here += 1;
          await context.until('both hold', () => here === 2);
          await second.run(() => {});
        });
      // Where core cannot see what is around the waiting code, one that was reentrant makes it visible.
      await context
        .client({ reentrant: true })
        .then((other) => other.locks.lock(`${name} seen`).run(() => {}));
      const outcomes = await Promise.allSettled([member(a, b), member(b, a)]);
      const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
      assert.equal(refused.length, 1, 'one of the two must be refused, and then the other is let in');
      assert.equal(refused[0]?.reason.code, 'LOCK_DEADLOCK');
      for (const lock of [a, b]) {
        const { holders, waiters } = await lock.inspect();
        assert.deepEqual([holders, waiters], [[], []], 'a circle left something behind');
      }
    },
  },
];
