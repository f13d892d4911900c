import type { LockManager } from '@locks/core';
import { DelayedError, type Job, Worker } from 'bullmq';
import type { Redis } from 'ioredis';

/** A job of a tenant. */
export interface TenantJob {
  readonly tenant: string;
}

const PER_TENANT = 3;
const AGAIN_MS = 500;

/**
 * A worker that runs at most three jobs of a tenant at a time, counted over the workers of all machines. A job above that goes back
 * to the queue and is taken again a little later: it keeps no worker from the jobs of other tenants.
 */
export function startWorker(
  locks: LockManager,
  work: (job: Job<TenantJob>) => Promise<void>,
  connection: Redis,
  queue = 'reports',
): Worker<TenantJob> {
  return new Worker<TenantJob>(
    queue,
    async (job, token) => {
      await using slot = await locks.semaphore(`tenant:${job.data.tenant}`, PER_TENANT).tryAcquire();
      if (slot === undefined) {
        // No failure, and no attempt that counts.
        await job.moveToDelayed(Date.now() + AGAIN_MS * (0.5 + Math.random()), token);
        throw new DelayedError();
      }
      await work(job);
    },
    { connection, concurrency: 10 },
  );
}
