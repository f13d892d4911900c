import { type LockError, lostWithResult } from './errors.ts';
import type { Lease } from './lease.ts';
import type { LeaseHandle } from './lease/lease-handle.ts';
import { releaseQuietly } from './lease/release-quietly.ts';
import { runInside, runUnder } from './scope/context.ts';

/** Runs `work` under a lease, and releases the lease afterwards. */
export function holdAndWork<T>(
  handle: LeaseHandle,
  work: (lease: Lease) => T | Promise<T>,
  reentrant: boolean,
): Promise<T> {
  return workAndRelease(
    () =>
      reentrant ? runInside(handle.scope, () => work(handle)) : runUnder([handle.lease], () => work(handle)),
    async () => {
      // The lease stays until children that had entered have left (docs/spec.md §5.4).
      if (handle.hasScope) await handle.scope.close();
      return releaseQuietly(handle);
    },
  );
}

/**
 * Runs `work`, then `release`, and gives the outcome of a `run` (docs/spec.md §3.5): the error of the work, or else the loss
 * that the release found, or else the value of the work.
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
