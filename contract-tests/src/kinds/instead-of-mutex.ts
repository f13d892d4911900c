import {
  type AcquireOptions,
  createLocks,
  type Lease,
  type Lock,
  type LockManager,
  type MultiLease,
} from '@locks/core';
import type { Harness } from '@locks/core/conformance';
import { delegateLease, delegateLock, delegateLocks, originalOf } from '../mutants/delegate.ts';

type CreateLocks = Harness['createLocks'];

const originalLocks = new WeakMap<object, Lock>();

/** Managers whose `lock(name)` is the write half of a readers/writer lock. */
export const withWriteLocks: CreateLocks = instead((locks) => ({
  lock: (name, options) => locks.readWriteLock(name, options).write,
}));

/** Managers whose `lock(name)` is an `all` of one. Re-entries, which `all` leaves to its members, stay the member's. */
export const withAllOfOne: CreateLocks = instead((locks) => ({
  all: (members) =>
    locks.all(Array.isArray(members) ? members.map((lock) => originalLocks.get(lock) ?? lock) : members),
  lock: (name, options) => {
    const lock: Lock = locks.lock(name, options);
    const all = locks.all([lock]);
    const disguised = delegateLock(lock, {
      acquire: async (given) =>
        isOwn(given) ? lock.acquire(originalOf(given)) : handOut(await all.acquire(given), given),
      tryAcquire: async (given) => {
        if (isOwn(given)) return lock.tryAcquire(originalOf(given));
        const set = await all.tryAcquire(given);
        return set && handOut(set, given);
      },
      run: (work, given) =>
        isOwn(given)
          ? lock.run(work, originalOf(given))
          : typeof work === 'function'
            ? all.run((set) => work(asOne(set)), given)
            : all.run(work, given),
    });
    originalLocks.set(disguised, lock);
    return disguised;
  },
}));

function isOwn(options: object | undefined): boolean {
  return options !== undefined && options !== null && ('within' in options || 'steal' in options);
}

/** Its promise settles some microtasks after that of the set: an abort in between counts, too. */
function handOut(set: MultiLease, options: AcquireOptions | undefined): Lease {
  if (!options?.signal?.aborted) return asOne(set);
  void set[Symbol.asyncDispose]();
  throw options.signal.reason;
}

function asOne(set: MultiLease): Lease {
  return delegateLease(set.leases[0] as Lease, {
    get validForMs() {
      return set.validForMs;
    },
    get signal() {
      return set.signal;
    },
    assertValid: (minRemainingMs) => set.assertValid(minRemainingMs),
    renew: (ttlMs) => set.renew(ttlMs),
    release: () => set.release(),
    [Symbol.asyncDispose]: () => set[Symbol.asyncDispose](),
  });
}

function instead(overrides: (locks: LockManager) => Partial<LockManager>): CreateLocks {
  const create = (...args: Parameters<typeof createLocks>): LockManager => {
    const locks = createLocks(...args) as LockManager;
    return delegateLocks(locks, overrides(locks));
  };
  return create as unknown as CreateLocks;
}
