import type { AcquireOptions, Lease, Lock, LockManager, LockOptions } from '@locks/core';

export { delegate } from '@locks/core/conformance';

/** The original lease of each changed lease: core re-enters only its own leases. */
const originals = new WeakMap<object, Lease>();

/** A manager that behaves as `locks` except for `overrides`. */
export function delegateLocks(locks: LockManager, overrides: Partial<LockManager>): LockManager {
  return {
    capabilities: locks.capabilities,
    lock: (name: string, options?: LockOptions) => locks.lock(name, options),
    readWriteLock: (name: string, options?: LockOptions) => locks.readWriteLock(name, options),
    semaphore: (name: string, permits: number, options?: LockOptions) =>
      locks.semaphore(name, permits, options),
    all: (members) => locks.all(members),
    inspect: (name) => locks.inspect(name),
    isLocked: (name) => locks.isLocked(name),
    ping: (options) => locks.ping(options),
    prepare: () => locks.prepare(),
    list: (prefix) => locks.list(prefix),
    forceRelease: (name, options) => locks.forceRelease(name, options),
    detached: (work) => locks.detached(work),
    close: (options) => locks.close(options),
    [Symbol.asyncDispose]: () => locks[Symbol.asyncDispose](),
    ...overrides,
  };
}

/** A manager whose locks are changed by `overrides`. */
export function overLocks(
  locks: LockManager,
  overrides: (lock: Lock, name: string) => Partial<Lock>,
): LockManager {
  return delegateLocks(locks, {
    lock: (name, options) => {
      const lock = locks.lock(name, options);
      return delegateLock(lock, overrides(lock, name));
    },
  });
}

/** A lock that behaves as `lock` except for `overrides`. */
export function delegateLock(lock: Lock, overrides: Partial<Lock>): Lock {
  return {
    name: lock.name,
    mode: lock.mode,
    acquire: (options) => lock.acquire(originalOf(options)),
    tryAcquire: (options) => lock.tryAcquire(originalOf(options)),
    run: (work, options) => lock.run(work, originalOf(options)),
    inspect: () => lock.inspect(),
    ...overrides,
  };
}

/** A lease that behaves as `lease` except for `overrides`, whose getters stay getters. */
export function delegateLease(lease: Lease, overrides: Partial<Lease>): Lease {
  const broken = {
    get name() {
      return lease.name;
    },
    get mode() {
      return lease.mode;
    },
    get acquisitionId() {
      return lease.acquisitionId;
    },
    get holdCount() {
      return lease.holdCount;
    },
    get fencingToken() {
      return lease.fencingToken;
    },
    get validForMs() {
      return lease.validForMs;
    },
    get signal() {
      return lease.signal;
    },
    assertValid: (minRemainingMs?: number) => lease.assertValid(minRemainingMs),
    renew: (ttlMs?: number) => lease.renew(ttlMs),
    release: () => lease.release(),
    [Symbol.asyncDispose]: () => lease[Symbol.asyncDispose](),
    // `toJSON` is for `JSON.stringify` and not in the types.
    toJSON: () => (lease as Lease & { toJSON(): object }).toJSON(),
  };
  const changed = Object.defineProperties(broken, Object.getOwnPropertyDescriptors(overrides));
  originals.set(changed, originals.get(lease) ?? lease);
  return changed;
}

/** A manager whose leases, from `acquire`, `tryAcquire` and in `run`, are changed by `change`. */
export function overLeases(locks: LockManager, change: (lease: Lease) => Lease): LockManager {
  return overLocks(locks, (lock) => ({
    acquire: async (options) => change(await lock.acquire(originalOf(options))),
    tryAcquire: async (options) => {
      const lease = await lock.tryAcquire(originalOf(options));
      return lease && change(lease);
    },
    run: (work, options) => lock.run((lease) => work(change(lease)), originalOf(options)),
  }));
}

/** The options with the original lease as `within`. */
export function originalOf(options: AcquireOptions | undefined): AcquireOptions | undefined {
  if (options?.within === undefined) return options;
  return { ...options, within: originals.get(options.within) ?? options.within };
}
