import type { BaseLease } from '@locks/core';
import { releaseQuietly } from './release-quietly.ts';

/** The extra time for which the store keeps the lock after its holder: more than the margin and a late timer take. */
const MARGIN = 0.02;
const LATE_TIMER_MS = 1_000;

/**
 * Releases a lease after `ms` milliseconds, in the background; at once where `ms` is 0 or less. The lease is shortened to this
 * time, so that a process that exits meanwhile leaves the lock for no longer. A release without an answer is reported by core's
 * event.
 *
 * @param minTtlMs - the shortest ttl of the backend
 */
export async function keepAtLeast(lease: BaseLease, ms: number, minTtlMs: number): Promise<void> {
  if (ms <= 0) return releaseQuietly(lease);
  try {
    await lease.renew(Math.max(minTtlMs, Math.ceil(ms * (1 + MARGIN)) + LATE_TIMER_MS));
  } catch {
    // The lock is lost already, or its ttl ends it: the slot is recorded, and that is what counts.
  }
  setTimeout(() => void releaseQuietly(lease), ms).unref();
}
