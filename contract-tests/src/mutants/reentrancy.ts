import { AsyncLocalStorage } from 'node:async_hooks';
import { type AcquireOptions, isLockError, type Lease, LockError, type LockManager } from '@locks/core';
import { delegate, delegateLease, delegateLock, delegateLocks, overLeases, overLocks } from './delegate.ts';
import type { Mutant } from './mutant.ts';
import { onCalls } from './on-calls.ts';

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
    name: 'always-reentrant',
    says: 'reentrancy needs no opt-in',
    host: 'memory',
    expected: ['reentrancy/not-unless-asked', 'reentrancy/queued-task-of-a-stranger'],
    locks: (locks) =>
      delegateLocks(locks, {
        lock: (name, options) => delegateLock(locks.lock(name, { ...options, reentrant: true }), {}),
      }),
  },
  {
    name: 'never-reentrant',
    says: 'the option reentrant has no effect',
    host: 'memory',
    expected: ['reentrancy/run-inside-run', 'reentrancy/three-levels', 'reentrancy/branches-take-turns'],
    locks: (locks) =>
      delegateLocks(locks, {
        lock: (name, options) => delegateLock(locks.lock(name, { ...options, reentrant: false }), {}),
      }),
  },
  {
    name: 're-entry-asks-the-store',
    says: 'every run calls the store first',
    host: 'memory',
    expected: ['reentrancy/run-inside-run'],
    locks: (locks) =>
      overLocks(locks, (lock) => ({
        run: async (work, options) => {
          await lock.inspect();
          return lock.run(work, options);
        },
      })),
  },
  {
    name: 'naive-reentrancy',
    says: 'any code in the asynchronous context of a holder re-enters',
    host: 'memory',
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
    host: 'memory',
    expected: ['reentrancy/bound-task-of-a-stranger', 'reentrancy/detached-work-is-a-stranger'],
    locks: (locks) => letsIn(locks, new Everywhere()),
  },
  {
    name: 'handles-re-enter',
    says: 'a handle re-enters without within',
    host: 'memory',
    expected: ['reentrancy/handle-inside-run'],
    locks: (locks) =>
      overLocks(locks, (lock, name) => ({
        acquire: (options) =>
          lock.acquire({ ...options, within: options?.within ?? contexts.getStore()?.get(name) }),
        run: (work, options) =>
          lock.run((lease) => contexts.run(new Map([[name, lease]]), () => work(lease)), options),
      })),
  },
  {
    name: 'no-nested-release',
    says: 'the handle of a re-entry cannot be released',
    host: 'memory',
    expected: [
      'reentrancy/within-re-enters',
      'reentrancy/early-release-inside-run',
      'reentrancy/local-wait-has-limits',
    ],
    locks: (locks) =>
      overLeases(locks, (lease) =>
        delegateLease(lease, {
          release: () =>
            lease.holdCount > 1 ? Promise.reject(new Error('not the first handle')) : lease.release(),
        }),
      ),
  },
  {
    name: 'first-release-frees',
    says: 'the first handle that is released frees the resource',
    host: 'memory',
    expected: ['reentrancy/within-re-enters'],
    locks: (locks) =>
      overLeases(locks, (lease) =>
        delegateLease(lease, {
          async release() {
            await lease.release();
            await locks.forceRelease(lease.name, { acquisitionId: lease.acquisitionId });
          },
        }),
      ),
  },
  {
    name: 'mutes-losses',
    says: 'a renewal that found the lease lost counts as unanswered',
    host: 'memory',
    expected: ['reentrancy/loss-on-every-level', 'reentrancy/within-is-checked'],
    calls: onCalls((backend) =>
      delegate(backend, {
        renew: async (...args) =>
          (await backend.renew(...args)).map((standing) =>
            standing.status === 'lost' ? { status: 'unknown', error: new Error('lost') } : standing,
          ),
      }),
    ),
  },
  {
    name: 'cycles-look-like-timeouts',
    says: 'a re-entry that would wait for itself times out',
    host: 'memory',
    expected: ['reentrancy/cycle-is-refused'],
    locks: (locks) =>
      overLocks(locks, (lock) => ({
        acquire: (options) =>
          lock.acquire(options).catch((error) => recoded(error, 'LOCK_REENTRANT', 'LOCK_TIMEOUT')),
        run: (work, options) =>
          lock.run(work, options).catch((error) => recoded(error, 'LOCK_REENTRANT', 'LOCK_TIMEOUT')),
      })),
  },
  {
    name: 'within-is-a-hint',
    says: 'a bad within is ignored',
    host: 'memory',
    expected: ['reentrancy/within-is-checked'],
    locks: (locks) =>
      overLocks(locks, (lock) => ({
        acquire: (options: AcquireOptions = {}) => {
          const { within, ...rest } = options;
          return lock
            .acquire(options)
            .catch((error) => (within === undefined ? Promise.reject(error) : lock.acquire(rest)));
        },
      })),
  },
  {
    name: 'siblings-wait-longer',
    says: 'a wait for a turn lasts two seconds longer than its limit',
    host: 'memory',
    expected: ['reentrancy/local-wait-has-limits'],
    locks: (locks) =>
      overLocks(locks, (lock) => ({
        acquire: (options) =>
          lock.acquire(
            options?.within ? { ...options, waitMs: (options.waitMs ?? 10_000) + 2_000 } : options,
          ),
      })),
  },
];
