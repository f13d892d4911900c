import { lostWithResult, isLockError, type LockError } from './errors.ts';
import { publish } from './events.ts';
import type { Lease, LeaseHandle } from './lease.ts';
import { runInside } from './scope/context.ts';
import { identity } from './tenure/keeper.ts';

/** Works under a lease, and releases it. */
export function holdAndWork<T>(
  lease: LeaseHandle,
  work: (lease: Lease) => T | Promise<T>,
  reentrant: boolean,
): Promise<T> {
  return workAndRelease(
    () => (reentrant ? runInside(lease.scope, () => work(lease)) : work(lease)),
    async () => {
      // Children that had entered are still inside: the lease stays until they have left (docs/spec.md §5.4).
      if (lease.hold.scope !== undefined) await lease.scope.close();
      return releaseQuietly(lease);
    },
  );
}

/**
 * Decides what the caller of a `run` is told (docs/spec.md §3.5): the work's own error, or else the loss that the release
 * found, or else the work's value.
 */
export async function workAndRelease<T>(
  work: () => T | Promise<T>,
  release: () => Promise<LockError | undefined>,
): Promise<T> {
  let outcome: { readonly value: T } | { readonly error: unknown };
  try {
    outcome = { value: await work() };
  } catch (error) {
    outcome = { error };
  }
  const loss = await release();
  if ('error' in outcome) {
    throw outcome.error;
  }
  if (loss !== undefined) throw lostWithResult(loss, outcome.value);
  return outcome.value;
}

/** The loss, if the lease was lost. Where the store gave no answer the work's outcome stands, and the event tells. */
export async function releaseQuietly(lease: LeaseHandle): Promise<LockError | undefined> {
  try {
    await lease.release();
    return undefined;
  } catch (error) {
    if (isLockError(error, 'LOCK_LOST')) return error;
    publish('locks:release-failed', { ...identity(lease.hold), error });
    return undefined;
  }
}
