/** A report that takes long: twenty requests may wait for it, over all machines, and the next one is told so at once. */
import { isLockError, type LockManager } from '@locks/core';

/** Gives the status of the answer. */
export async function report(locks: LockManager, work: () => Promise<void>): Promise<200 | 503> {
  try {
    await locks.lock('report', { maxWaiters: 20, waitMs: 5_000 }).run(work);
    return 200;
  } catch (error) {
    if (isLockError(error, 'LOCK_QUEUE_FULL')) return 503; // 20 wait: at once
    if (isLockError(error, 'LOCK_TIMEOUT')) return 503; // after 5 s
    throw error;
  }
}
