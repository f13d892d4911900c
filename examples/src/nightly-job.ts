/**
 * A job that must run once a night although every machine starts it. The lock alone is not enough: a machine whose clock
 * is late would find it free again. What was done is written down, and looked up under the lock.
 */
import type { LockManager } from '@locks/core';

/** Where it stands what was done: a table of one's own database. */
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
  // Nobody queues for a job that somebody else is doing.
  await using lease = await locks.lock(`job:${job}`).tryAcquire({ ttlMs: 60_000 });
  if (lease === undefined) return 'somebody-is-at-it';
  if (await log.isDone(job, night)) return 'already-done';
  await work(lease.signal);
  // The work may have taken hours: what is written now must still be ours to write.
  lease.assertValid();
  await log.markDone(job, night);
  return 'ran';
}
