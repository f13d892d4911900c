import type { Lease } from '@locks/core';
import { illegalConstructor, shapeInterface } from './interface-object.ts';
import type { WebLock, WebLockMode } from './types.ts';

interface Granted {
  readonly name: string;
  readonly mode: WebLockMode;
  readonly lease: Lease;
}

const granted = new WeakMap<object, Granted>();

/** A granted lock. Only `request()` creates one. */
export class Lock implements WebLock {
  private constructor() {
    throw illegalConstructor();
  }

  /** The name that was requested. */
  get name(): string {
    return grantOf(this).name;
  }

  /** The mode: whether others may hold the same name. */
  get mode(): WebLockMode {
    return grantOf(this).mode;
  }
}

shapeInterface(Lock, { attributes: ['name', 'mode'] });

export function makeLock(of: Granted): WebLock {
  const lock = Object.create(Lock.prototype) as Lock;
  granted.set(lock, of);
  return lock;
}

// setup: import { leaseOf, type WebLocks } from '@locks/web-locks';
// setup: declare const locks: WebLocks; declare const url: string;
/**
 * The lease behind a lock, which the Web Locks API does not have: its `signal` aborts when the lock is stolen or lost, and
 * its `fencingToken` guards what is written. The request releases it.
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
