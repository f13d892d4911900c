import type { Lease } from '@locks/core';
import type { WebLock, WebLockMode } from './web-locks.ts';

interface Granted {
  readonly name: string;
  readonly mode: WebLockMode;
  readonly lease: Lease;
}

const granted = new WeakMap<object, Granted>();

/** The `Lock` of the specification: two getters, and no constructor that anybody may call. */
class Lock implements WebLock {
  constructor() {
    throw new TypeError('Illegal constructor');
  }

  get name(): string {
    return grantOf(this).name;
  }

  get mode(): WebLockMode {
    return grantOf(this).mode;
  }

  get [Symbol.toStringTag](): string {
    return 'Lock';
  }
}

export function makeLock(of: Granted): WebLock {
  const lock = Object.create(Lock.prototype) as Lock;
  granted.set(lock, of);
  return lock;
}

/**
 * The lease behind a lock, which the Web Locks API does not have: its `signal` aborts when the lock is stolen or lost, and
 * its `fencingToken` guards what is written. Releasing it is the request's affair.
 *
 * @throws TypeError if `lock` was not granted by `@locks/web-locks`
 * @example
 * ```ts
 * await locks.request('sku:42', async (lock) => {
 *   await fetch(url, { signal: leaseOf(lock).signal });
 * });
 * ```
 */
export function leaseOf(lock: WebLock | null): Lease {
  return grantOf(lock).lease;
}

function grantOf(lock: WebLock | null): Granted {
  const found = lock === null ? undefined : granted.get(lock);
  if (found === undefined) throw new TypeError('Not a lock that was granted by @locks/web-locks.');
  return found;
}
