import type { FencedLockManager } from '@locks/core';
import { once, type OnceOptions, type OnceResult, type OnceRun } from '@locks/once';
import cron from 'node-cron';

/** Starts the job on this machine, as on all others. Gives the function that ends the schedule, and a run that is under way. */
export function scheduleInvoices(
  locks: FencedLockManager,
  options: OnceOptions,
  sendInvoices: (run: OnceRun) => Promise<void>,
  onResult: (result: OnceResult<void> | { status: 'error'; error: unknown }) => void,
  pattern = '0 0 * * *',
): () => void {
  const stopping = new AbortController();
  const { signal } = stopping;
  const call = async (): Promise<void> => {
    try {
      onResult(await once(locks, 'invoices', sendInvoices, { ...options, signal }));
    } catch (error) {
      onResult({ status: 'error', error });
    }
  };
  // `noOverlap`: while a run is under way, this machine does not call a second time.
  const task = cron.schedule(pattern, call, { timezone: 'Europe/Berlin', noOverlap: true });
  return () => {
    void task.destroy();
    stopping.abort();
  };
}
