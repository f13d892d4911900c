import type { FencedLockManager } from '@locks/core';
import { once, type OnceOptions, type OnceResult, type OnceRun } from '@locks/once';
import { Cron } from 'croner';

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
  // `protect`: while a run is under way, this machine does not call a second time.
  const schedule = {
    timezone: 'Europe/Berlin',
    protect: true,
    catch: (error: unknown) => onResult({ status: 'error', error }),
  };
  const job = new Cron(pattern, schedule, async () => {
    onResult(await once(locks, 'invoices', sendInvoices, { ...options, signal }));
  });
  return () => {
    job.stop();
    stopping.abort();
  };
}
