import { isLockError, type LockError } from '../errors.ts';
import type { BaseLease } from '../lease.ts';

/** Releases a lease; returns the loss if it was lost. A release without an answer changes no outcome: an event reports it. */
export async function releaseQuietly(lease: Pick<BaseLease, 'release'>): Promise<LockError | undefined> {
  try {
    await lease.release();
  } catch (error) {
    if (isLockError(error, 'LOCK_LOST')) return error;
  }
  return undefined;
}
