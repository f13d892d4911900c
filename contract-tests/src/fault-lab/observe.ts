import { isLockError, type Lease, type LockError, type LockManager } from '@locks/core';
import { waitUntil } from '@locks/test-servers';
import { expect } from 'vitest';

/** The `LockError` that `work` rejects with. */
export async function failure(work: Promise<unknown>): Promise<LockError> {
  const error: unknown = await work.then(
    (value) => expect.fail(`it did not fail, and gave ${String(value)}`),
    (reason: unknown) => reason,
  );
  if (!isLockError(error)) throw error;
  return error;
}

/** The same, and when it failed. */
export async function timedFailure(
  work: Promise<unknown>,
): Promise<{ readonly code: LockError['code']; readonly at: number }> {
  const { code } = await failure(work);
  return { code, at: performance.now() };
}

/** Resolves when the lease's signal aborts: why, and when. */
export function lossOf(
  lease: Pick<Lease, 'signal'>,
): Promise<{ readonly reason: unknown; readonly at: number }> {
  return new Promise((resolve) => {
    const report = () => {
      const { reason } = lease.signal;
      resolve({ reason: isLockError(reason, 'LOCK_LOST') ? reason.reason : reason, at: performance.now() });
    };
    if (lease.signal.aborted) report();
    else lease.signal.addEventListener('abort', report, { once: true });
  });
}

/** The lease of an acquire, and when it was granted. May be awaited later, or not at all when the test fails before. */
export function grantOf<L extends Lease>(
  acquiring: Promise<L>,
): Promise<{ readonly lease: L; readonly at: number }> {
  return later(acquiring.then((lease) => ({ lease, at: performance.now() })));
}

/** A promise that is awaited later, or not at all when the test fails before. */
export function later<T>(work: Promise<T>): Promise<T> {
  work.catch(() => undefined);
  return work;
}

/** A promise and whether it is settled by now. */
export function watched<T>(work: Promise<T>): { readonly work: Promise<T>; readonly settled: boolean } {
  const watch = { work, settled: false };
  const settle = () => {
    watch.settled = true;
  };
  work.then(settle, settle);
  return watch;
}

/** Resolves when `count` acquisitions wait for `name`. */
export async function untilWaiting(
  locks: Pick<LockManager, 'inspect'>,
  name: string,
  count = 1,
): Promise<void> {
  const waiting = async () => (await locks.inspect(name)).waiters.length === count;
  await waitUntil(waiting, { what: `${count} waiters of ${name}`, timeoutMs: 20_000 });
}

/** Prints what was measured, for docs/backends/. */
export function figure(what: string, value: number, unit = 'ms'): void {
  process.stdout.write(`    figure: ${what}: ${Math.round(value * 10) / 10} ${unit}\n`);
}
