import type { FencedLockManager } from '@locks/core';
import { runCoordinator, type RunCoordinatorOptions } from '@locks/once';
import cron, { type ScheduledTask } from 'node-cron';

/** Starts the schedule on this machine, as on all others: each time one of them sends the invoices. */
export function scheduleInvoices(
  locks: FencedLockManager,
  options: RunCoordinatorOptions,
  sendInvoices: () => Promise<void>,
  pattern = '0 3 * * *',
): ScheduledTask {
  return cron.schedule(pattern, sendInvoices, {
    name: 'invoices',
    timezone: 'Europe/Berlin',
    distributed: true,
    // How long a machine that died blocks the task.
    distributedLease: 30_000,
    runCoordinator: runCoordinator(locks, options),
  });
}
