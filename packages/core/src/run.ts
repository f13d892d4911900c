import { lostWithResult, isLockError, type LockError } from './errors.ts';
import { publish } from './events.ts';
import type { Lease, LeaseHandle } from './lease.ts';
import { runInside } from './scope/context.ts';
import { identity } from './tenure/keeper.ts';

/**
 * Works under a lease, releases it, and decides what the caller is told (docs/spec.md §3.5): the work's own error, or
 * else the loss of the lease, or else the work's value.
 */
export async function holdAndWork<T>(
  lease: LeaseHandle,
  work: (lease: Lease) => T | Promise<T>,
  reentrant: boolean,
): Promise<T> {
  const { hold } = lease;
  let outcome: { readonly value: T } | { readonly error: unknown };
  try {
    outcome = { value: await (reentrant ? runInside(lease.scope, () => work(lease)) : work(lease)) };
  } catch (error) {
    outcome = { error };
  }
  // Children that had entered are still inside: the lease stays until they have left (docs/spec.md §5.4).
  if (hold.scope !== undefined) await lease.scope.close();
  const loss = await releaseQuietly(lease);
  if ('error' in outcome) {
    throw outcome.error;
  }
  if (loss !== undefined) throw lostWithResult(loss, outcome.value);
  return outcome.value;
}

/** The loss, if the lease was lost. Where the store gave no answer the work's outcome stands, and the event tells. */
async function releaseQuietly(lease: LeaseHandle): Promise<LockError | undefined> {
  try {
    await lease.release();
    return undefined;
  } catch (error) {
    if (isLockError(error, 'LOCK_LOST')) return error;
    publish('locks:release-failed', { ...identity(lease.hold), error });
    return undefined;
  }
}
