import type { Lease, LockBackend } from '@locks/core';
import type { LockRequest } from './lock-request.ts';

/** A granted request and its lease. */
export interface Held {
  readonly request: LockRequest;
  readonly lease: Lease;
}

const heldByBackend = new WeakMap<LockBackend, Set<Held>>();

/** What this process holds on one backend object, through whichever client. */
export function heldOn(backend: LockBackend): Set<Held> {
  let held = heldByBackend.get(backend);
  if (held === undefined) heldByBackend.set(backend, (held = new Set()));
  return held;
}

/** Whether the grant of `thief` ended this hold. One with a higher token came after it. */
export function isRobbedBy(thief: Lease, { lease }: Held): boolean {
  if (lease.name !== thief.name) return false;
  return thief.fencingToken === undefined || (lease.fencingToken ?? 0n) < thief.fencingToken;
}
