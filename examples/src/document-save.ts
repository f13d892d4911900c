/** Saves of a document, one at a time over all machines. Of those that wait only the newest one is written. */
import { isLockError, type LockManager } from '@locks/core';
import { newestWins } from '@locks/once';

/** Tells whether this save was written; otherwise a newer one is. */
export async function save(locks: LockManager, id: string, write: () => Promise<void>): Promise<boolean> {
  try {
    await newestWins(locks, `document:${id}`, write, { waitMs: 30_000 });
    return true;
  } catch (error) {
    if (isLockError(error, 'LOCK_SUPERSEDED')) return false;
    throw error;
  }
}
