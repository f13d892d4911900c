import type { FencedLockManager } from '@locks/core';
import { once, type OnceOptions, type OnceResult, type OnceRun } from '@locks/once';
import { Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';

/**
 * Starts a worker of this machine, and the schedule, which all machines share. `connection` has `maxRetriesPerRequest: null`.
 * Gives the function that ends the worker.
 */
export async function scheduleInvoices(
  locks: FencedLockManager,
  options: OnceOptions,
  sendInvoices: (run: OnceRun) => Promise<void>,
  onResult: (result: OnceResult<void> | { status: 'error'; error: unknown }) => void,
  connection: Redis,
  pattern = '0 0 * * *',
): Promise<() => Promise<void>> {
  const queue = new Queue('invoices', { connection });
  const repeat = { pattern, tz: 'Europe/Berlin' };
  // A run that failed is tried again: the number of attempts and their distance are those of BullMQ.
  const retries = { attempts: 5, backoff: { type: 'exponential', delay: 1_000 } };
  await queue.upsertJobScheduler('nightly', repeat, { name: 'send', opts: retries });
  const worker = new Worker(
    'invoices',
    async (job) => {
      // The moment at which the job was due: the same in each attempt, however late a worker takes it.
      const clock = (): number => job.timestamp + (job.opts.delay ?? 0);
      onResult(await once(locks, 'invoices', sendInvoices, { ...options, clock }));
    },
    { connection },
  );
  worker.on('failed', (_job, error) => onResult({ status: 'error', error }));
  worker.on('error', (error) => onResult({ status: 'error', error }));
  return async () => {
    await worker.close();
    await queue.close();
  };
}
