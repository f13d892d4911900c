import { RedisBackend } from '@agendajs/redis-backend';
import type { FencedLockManager } from '@locks/core';
import { once, type OnceOptions, type OnceResult, type OnceRun } from '@locks/once';
import { Agenda } from 'agenda';

/** Starts an Agenda on this machine, and the schedule, which all machines share. Gives the function that ends it. */
export async function scheduleInvoices(
  locks: FencedLockManager,
  options: OnceOptions,
  sendInvoices: (run: OnceRun) => Promise<void>,
  onResult: (result: OnceResult<void> | { status: 'error'; error: unknown }) => void,
  redisUrl: string,
  pattern = '0 0 * * *',
  lockLifetime = 600_000,
): Promise<() => Promise<void>> {
  const agenda = new Agenda({ backend: new RedisBackend({ connectionString: redisUrl }) });
  agenda.on('error', (error) => onResult({ status: 'error', error }));
  agenda.on('fail', (error) => onResult({ status: 'error', error }));
  // Agenda gives the job to another machine after `lockLifetime`, also where the first one is still at it.
  // oxlint-disable-next-line typescript/no-misused-promises -- Agenda waits for it.
  agenda.define('invoices', async () => onResult(await once(locks, 'invoices', sendInvoices, options)), {
    lockLifetime,
  });
  await agenda.start();
  await agenda.every(pattern, 'invoices', undefined, { timezone: 'Europe/Berlin', skipImmediate: true });
  return () => agenda.stop();
}
