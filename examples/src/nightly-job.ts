/**
 * A job that must run once a night although every machine starts it. The lock alone is not enough: a machine whose clock
 * is late would find it free again. What was done is written down, and looked up under the lock.
 */
import type { LockManager } from '@locks/core';

/** The record of what was done: a table of the application's own database. */
export interface JobLog {
  isDone(job: string, night: string): Promise<boolean>;
  markDone(job: string, night: string): Promise<void>;
}

export type Outcome = 'ran' | 'somebody-is-at-it' | 'already-done';

export async function runOnce(
  locks: LockManager,
  log: JobLog,
  job: string,
  night: string,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<Outcome> {
  // A machine does not wait for a job that another one is doing.
  const lease = await locks.lock(`job:${job}`).tryAcquire({ ttlMs: 60_000 });
  if (lease === undefined) return 'somebody-is-at-it';
  try {
    if (await log.isDone(job, night)) return 'already-done';
    await work(lease.signal);
    // The work may have taken hours: what is written now must still be ours to write.
    lease.assertValid();
    await log.markDone(job, night);
    return 'ran';
  } finally {
    await lease.release();
  }
}
