import type { Lease } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import type { LockRequest } from './lock-request.ts';

/** A granted request and its lease. */
export interface HeldLock {
  readonly request: LockRequest;
  readonly lease: Lease;
}

const heldByBackend = new WeakMap<LockBackend, Set<HeldLock>>();

/** The locks that this process holds on one backend object, through any client. */
export function heldOn(backend: LockBackend): Set<HeldLock> {
  let held = heldByBackend.get(backend);
  if (held === undefined) heldByBackend.set(backend, (held = new Set()));
  return held;
}

/** Tells whether the steal by the acquisition `stealing` ended this hold. A hold with a higher token was granted after it. */
export function isStolenBy(stealing: Lease, { lease }: HeldLock): boolean {
  if (lease.name !== stealing.name) return false;
  return stealing.fencingToken === undefined || (lease.fencingToken ?? 0n) < stealing.fencingToken;
}
