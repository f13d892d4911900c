import { isLockError, type FencedLease, type FencedLockManager } from '@locks/core';
import { adopt, transfer, type TransferTicket } from '@locks/core/transfer';
import { type Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';

/** A job, and the lease that it continues. */
export interface ResizeJob {
  readonly image: string;
  readonly ticket: TransferTicket;
}

/** Takes the upload of an image. Nobody else changes that image until the worker has resized it. */
export async function upload(
  locks: FencedLockManager,
  queue: Queue<ResizeJob>,
  image: string,
  save: (lease: FencedLease) => Promise<void>,
): Promise<void> {
  const lease = await locks.lock(`image:${image}`).acquire({ waitMs: 0 });
  try {
    await save(lease);
    await queue.add('resize', { image, ticket: await transfer(lease, { ttlMs: 60_000 }) });
  } finally {
    // Releases the lease where the work failed; does nothing where it was transferred.
    await lease.release();
  }
}

export function startWorker(
  locks: FencedLockManager,
  resize: (image: string, lease: FencedLease) => Promise<void>,
  connection: Redis,
): Worker<ResizeJob> {
  return new Worker<ResizeJob>(
    'images',
    async ({ data: { image, ticket } }) => {
      await using lease = await leaseOf(locks, ticket);
      await resize(image, lease);
    },
    { connection },
  );
}

async function leaseOf(locks: FencedLockManager, ticket: TransferTicket): Promise<FencedLease> {
  try {
    return await adopt(locks, ticket);
  } catch (error) {
    if (!isLockError(error, 'LOCK_NOT_HELD')) throw error;
    // The job came too late, or runs again after a failure: it waits for its turn like anybody else.
    return await locks.lock(ticket.name).acquire();
  }
}
