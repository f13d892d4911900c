import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type AcquireOptions,
  isLockError,
  type Lease,
  type Lock,
  LockError,
  type LockManager,
} from '@locks/core';
import { delegateLock, overLocks } from './delegate.ts';
import type { Mutant } from './mutant.ts';

/** Re-enters wherever `held` finds a lease of the name, without count or turn. */
function letsIn(
  locks: LockManager,
  held: Pick<AsyncLocalStorage<ReadonlyMap<string, Lease>>, 'run' | 'getStore'>,
): LockManager {
  return overLocks(locks, (lock, name) => ({
    run: (work, options) => {
      const lease = held.getStore()?.get(name);
      if (lease !== undefined) return Promise.resolve(work(lease));
      return lock.run(
        (own) => held.run(new Map([...(held.getStore() ?? []), [name, own]]), () => work(own)),
        options,
      );
    },
  }));
}

const contexts = new AsyncLocalStorage<ReadonlyMap<string, Lease>>();

/** The leases whose work runs at the moment, in any context. */
class Everywhere {
  readonly #running: ReadonlyMap<string, Lease>[] = [];

  getStore(): ReadonlyMap<string, Lease> | undefined {
    return this.#running.at(-1);
  }

  run<R>(store: ReadonlyMap<string, Lease>, work: () => R): R {
    this.#running.push(store);
    const left = (): void => void this.#running.splice(this.#running.indexOf(store), 1);
    const result = work();
    Promise.resolve(result).then(left, left);
    return result;
  }
}

function recoded(error: unknown, from: 'LOCK_REENTRANT', to: 'LOCK_TIMEOUT'): never {
  throw isLockError(error, from) ? new LockError(to, error.message) : error;
}

export const reentrancyMutants: readonly Mutant[] = [
  {
    name: 'run-is-not-seen-from-inside',
    says: 'code that waits for a run around it waits until its time is over',
    expected: ['reentrancy/not-unless-asked', 'shared/upgrade-inside-run-is-refused'],
    locks: (locks) => {
      const hidden = <T extends Lock>(lock: T): T =>
        delegateLock(lock, {
          run: (work, options) => lock.run((lease) => locks.detached(() => work(lease)), options),
        }) as T;
      return {
        lock: (name, options) => hidden(locks.lock(name, options)) as ReturnType<LockManager['lock']>,
        readWriteLock: (name, options) => {
          const both = locks.readWriteLock(name, options);
          return { name, read: hidden(both.read), write: both.write };
        },
      };
    },
  },
  {
    name: 'always-reentrant',
    says: 'reentrancy needs no opt-in',
    expected: ['reentrancy/not-unless-asked', 'reentrancy/queued-task-of-a-stranger'],
    locks: (locks) => ({
      lock: (name, options) => delegateLock(locks.lock(name, { ...options, reentrant: true }), {}),
    }),
  },
  {
    name: 'never-reentrant',
    says: 'the option reentrant has no effect',
    expected: ['reentrancy/run-inside-run', 'reentrancy/three-levels', 'reentrancy/branches-take-turns'],
    locks: (locks) => ({
      lock: (name, options) => delegateLock(locks.lock(name, { ...options, reentrant: false }), {}),
    }),
  },
  {
    name: 're-entry-asks-the-store',
    says: 'every run calls the store first',
    expected: ['reentrancy/run-inside-run'],
    lock: (lock) => ({
      run: async (work, options) => {
        await lock.inspect();
        return lock.run(work, options);
      },
    }),
  },
  {
    name: 'naive-reentrancy',
    says: 'any code in the asynchronous context of a holder re-enters',
    expected: [
      'reentrancy/not-unless-asked',
      'reentrancy/run-inside-run',
      'reentrancy/three-levels',
      'reentrancy/branches-take-turns',
      'reentrancy/detached-child',
      'reentrancy/queued-child-becomes-stranger',
      'reentrancy/queued-task-of-a-stranger',
      'reentrancy/detached-work-is-a-stranger',
      'reentrancy/other-managers-are-strangers',
    ],
    locks: (locks) => letsIn(locks, contexts),
  },
  {
    name: 'process-wide-reentrancy',
    says: 'any code of a process that holds re-enters',
    expected: ['reentrancy/bound-task-of-a-stranger', 'reentrancy/detached-work-is-a-stranger'],
    locks: (locks) => letsIn(locks, new Everywhere()),
  },
  {
    name: 'handles-re-enter',
    says: 'a handle re-enters without within',
    expected: ['reentrancy/handle-inside-run'],
    lock: (lock, name) => ({
      acquire: (options) =>
        lock.acquire({ ...options, within: options?.within ?? contexts.getStore()?.get(name) }),
      run: (work, options) =>
        lock.run((lease) => contexts.run(new Map([[name, lease]]), () => work(lease)), options),
    }),
  },
  {
    name: 'no-nested-release',
    says: 'the handle of a re-entry cannot be released',
    expected: [
      'reentrancy/within-re-enters',
      'reentrancy/early-release-inside-run',
      'reentrancy/local-wait-has-limits',
    ],
    lease: (lease) => ({
      release: () =>
        lease.holdCount > 1 ? Promise.reject(new Error('not the first handle')) : lease.release(),
    }),
  },
  {
    name: 'first-release-frees',
    says: 'the first handle that is released frees the resource',
    expected: ['reentrancy/within-re-enters'],
    lease: (lease, locks) => ({
      async release() {
        await lease.release();
        await locks.forceRelease(lease.name, { acquisitionId: lease.acquisitionId });
      },
    }),
  },
  {
    name: 'cycles-look-like-timeouts',
    says: 'a re-entry that would wait for itself times out',
    expected: ['reentrancy/cycle-is-refused'],
    lock: (lock) => ({
      acquire: (options) =>
        lock.acquire(options).catch((error) => recoded(error, 'LOCK_REENTRANT', 'LOCK_TIMEOUT')),
      run: (work, options) =>
        lock.run(work, options).catch((error) => recoded(error, 'LOCK_REENTRANT', 'LOCK_TIMEOUT')),
    }),
  },
  {
    name: 'within-is-a-hint',
    says: 'a bad within is ignored',
    expected: ['reentrancy/within-is-checked'],
    lock: (lock) => ({
      acquire: (options: AcquireOptions = {}) => {
        const { within, ...rest } = options;
        return lock
          .acquire(options)
          .catch((error) => (within === undefined ? Promise.reject(error) : lock.acquire(rest)));
      },
    }),
  },
  {
    name: 'siblings-wait-longer',
    says: 'a wait for a turn lasts two seconds longer than its limit',
    expected: ['reentrancy/local-wait-has-limits'],
    lock: (lock) => ({
      acquire: (options) =>
        lock.acquire(options?.within ? { ...options, waitMs: (options.waitMs ?? 10_000) + 2_000 } : options),
    }),
  },
];
