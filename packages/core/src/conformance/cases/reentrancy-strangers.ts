import assert from 'node:assert/strict';
import { AsyncResource } from 'node:async_hooks';
import type { Lease } from '../../lease.ts';
import type { ConformanceCase } from '../case.ts';
import type { Stage } from '../stage.ts';
import { watch } from '../waiter.ts';

/** A queue as many libraries have it: whoever adds a task runs, in his own context, those that others added before. */
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

/** A task of somebody else is run in the context of a scope. Whether it got in. */
async function strangerGetsIn(stage: Stage, reentrant: boolean, wrap: Wrapped): Promise<boolean> {
  const { locks } = await stage.client({ reentrant });
  const lock = locks.lock(stage.name());
  const queue = new TaskQueue();
  let inside = false;
  const task = async (): Promise<string> => {
    try {
      await lock.run(async () => void (inside = true), { waitMs: stage.busyMs });
      return 'in';
    } catch (error) {
      assert.equal((error as { code?: string }).code, 'LOCK_TIMEOUT');
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
    title:
      "a task of a stranger that a queue runs in the holder's asynchronous context does not get in by default",
    async run(stage) {
      assert.equal(await strangerGetsIn(stage, false, (task) => task), false);
    },
  },
  {
    id: 'reentrancy/bound-task-of-a-stranger',
    clause: '§5.7',
    title: 'nor does one that was bound to its own context, where the lock is reentrant',
    async run(stage) {
      assert.equal(await strangerGetsIn(stage, true, (task) => AsyncResource.bind(task)), false);
      // The very same task without binding is let in: which is why reentrancy is asked for, and binding is advised.
      assert.equal(await strangerGetsIn(stage, true, (task) => task), true);
    },
  },
  {
    id: 'reentrancy/detached-work-is-a-stranger',
    clause: '§5.7',
    title: 'work in locks.detached is a stranger, whatever scope it is called in',
    async run(stage) {
      const { locks } = await stage.client({ reentrant: true, waitMs: 10 * stage.timing.slackMs });
      const lock = locks.lock(stage.name());
      await lock.run(async (lease) => {
        const work = () => lock.run(() => assert.fail('a stranger got in'), { waitMs: stage.busyMs });
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
    title: 'a handle acquired inside run without within waits like a stranger, and its timeout says why',
    async run(stage) {
      const { locks } = await stage.client({ reentrant: true, waitMs: 10 * stage.timing.slackMs });
      const lock = locks.lock(stage.name());
      const waitMs = stage.busyMs;
      await lock.run(async () => {
        assert.equal(await lock.tryAcquire(), undefined);
        const handle = lock.acquire({ waitMs });
        // One that came in all the same must leave, or this run would wait for it.
        watch(handle.then((lease) => lease.release()));
        await assert.rejects(handle, { code: 'LOCK_TIMEOUT', message: /within/ });
      });
    },
  },
  {
    id: 'reentrancy/other-managers-are-strangers',
    clause: '§5.2',
    title: 'a scope of one manager lets in neither another manager nor another resource',
    async run(stage) {
      const [one, two] = [
        await stage.client({ reentrant: true, waitMs: 10 * stage.timing.slackMs }),
        await stage.client({ reentrant: true }),
      ];
      const name = stage.name();
      await one.locks.lock(name).run(async (lease) => {
        const nested = two.locks.lock(name).run(() => assert.fail('it got in'), { waitMs: stage.busyMs });
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
    title: 'a local wait that would wait for itself is refused with LOCK_REENTRANT, not left to time out',
    async run(stage) {
      const { locks } = await stage.client({ reentrant: true, waitMs: 10 * stage.timing.slackMs });
      const name = stage.name();
      const [a, b] = [locks.lock(`${name} a`), locks.lock(`${name} b`)];
      // A branch that has the turn asks its parent for a turn.
      await a.run(async (parent) => {
        await a.run(async () => {
          const entry = a.acquire({ within: parent });
          watch(entry.then((lease) => lease.release()));
          await assert.rejects(entry, { code: 'LOCK_REENTRANT' });
        });
      });
      // Two branches, each in the scope that the other asks for.
      const outer = a.run(() =>
        b.run(async () => {
          const branch = (first: typeof a, second: typeof a) =>
            first.run(async () => {
              await stage.sleep(2);
              await second.run(async () => {});
            });
          const branches = [branch(a, b), branch(b, a)];
          return Promise.allSettled(branches);
        }),
      );
      const settled = watch(outer);
      await stage.until('both branches are settled', () => settled.settled, 12 * stage.timing.slackMs);
      const refused = (await outer).filter(({ status }) => status === 'rejected');
      assert.equal(refused.length, 1, 'one of the two must be refused, and then the other gets in');
      assert.equal((refused[0] as PromiseRejectedResult).reason.code, 'LOCK_REENTRANT');
    },
  },
];
