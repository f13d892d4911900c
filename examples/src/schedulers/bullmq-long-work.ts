import { createLocks, type FencedLease, type FencedLockManager } from '@locks/core';
import { renewalThread } from '@locks/core/renewal-thread';
import { DelayedError, type Job, Worker, type WorkerOptions } from 'bullmq';
import makeBackend from './bullmq-locks-backend.ts';

/** A job whose work blocks the event loop. */
export interface ReportJob {
  readonly report: string;
}

/** The work of a job. */
export interface Rendering {
  /** Whether the report is there already. */
  isDone(job: ReportJob): Promise<boolean>;
  /** Renders the report: synchronous, and for as long as it takes. */
  render(job: ReportJob, lease: FencedLease): void;
}

/** The locks of this process, which outlive work that blocks it for up to ten minutes. */
export function openLocks(ttlMs = 30_000): FencedLockManager {
  const module = new URL('./bullmq-locks-backend.ts', import.meta.url);
  return createLocks(makeBackend(), {
    ttlMs,
    renewalThread: renewalThread(module, { maxBlockedMs: 600_000 }),
  });
}

/**
 * A worker whose job blocks the event loop for longer than BullMQ waits for a sign of life. BullMQ takes it for stalled, and hands the job
 * to another worker: that one finds the lock held, and puts the job back until the first one is ready.
 */
export function startWorker(
  locks: FencedLockManager,
  work: Rendering,
  options: WorkerOptions,
  againMs = 5_000,
): Worker<ReportJob> {
  return new Worker<ReportJob>(
    'reports',
    async (job: Job<ReportJob>, token) => {
      await using lease = await locks.lock(`report:${job.data.report}`).tryAcquire();
      if (lease === undefined) {
        // No failure, and no attempt that counts.
        await job.moveToDelayed(Date.now() + againMs, token);
        throw new DelayedError();
      }
      // The second delivery comes after the end of the first one: the lock keeps them apart, and this keeps the work from being repeated.
      if (await work.isDone(job.data)) return;
      work.render(job.data, lease);
      lease.assertValid();
    },
    options,
  );
}
