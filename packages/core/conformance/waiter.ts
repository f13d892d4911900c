import type { PermitOptions } from '../src/compose/semaphore.ts';
import type { LockManager } from '../src/create-locks.ts';
import type { Lease } from '../src/lease.ts';
import type { AcquireOptions } from '../src/options.ts';
import { CallCounter } from './around-calls.ts';
import type { Client, CaseContext } from './case-context.ts';

/** An acquire that was contended and waits. */
export interface Waiter extends Client {
  readonly lease: Promise<Lease>;
  /** How long after its start the acquire settled, in milliseconds; `undefined` while it waits. */
  readonly settled: () => number | undefined;
  readonly calls: CallCounter;
}

/** Starts an acquire of a held resource, with a client of its own, and resolves when it stands in the queue. */
export function startWaiting(context: CaseContext, name: string, options?: AcquireOptions): Promise<Waiter> {
  return startWaitingFor(context, (locks) => locks.lock(name), options);
}

/** As `startWaiting`, for a lock of any kind. */
export async function startWaitingFor(
  context: CaseContext,
  lockOf: (locks: LockManager) => { acquire(options?: PermitOptions): Promise<Lease> },
  options?: PermitOptions,
): Promise<Waiter> {
  const calls = new CallCounter();
  const client = await context.client({ wrap: calls.wrap });
  const startedAt = performance.now();
  let settledAfter: number | undefined;
  const lease = lockOf(client.locks).acquire(options);
  const settled = (): void => {
    settledAfter = performance.now() - startedAt;
  };
  // The case awaits the lease later: until then these handlers keep a rejection from being unhandled.
  lease.then(settled, settled);
  await context.until('the first attempt of a waiter is answered', () => calls.answersTo('attempt') > 0);
  return { ...client, lease, settled: () => settledAfter, calls };
}

/** Starts acquires of a held resource by one client, and resolves when they stand in the queue, in this order. */
export async function startWaitingTogether(
  context: CaseContext,
  lockOf: Parameters<typeof startWaitingFor>[1],
  count: number,
  options?: PermitOptions,
): Promise<readonly Promise<Lease>[]> {
  const calls = new CallCounter();
  const { locks } = await context.client({ wrap: calls.wrap });
  const leases: Promise<Lease>[] = [];
  while (leases.length < count) {
    const answers = calls.answersTo('attempt');
    const lease = lockOf(locks).acquire(options);
    // The case awaits the lease later, as in `startWaitingFor`.
    watch(lease);
    leases.push(lease);
    await context.until('the next waiter stands in the queue', () => calls.answersTo('attempt') > answers);
  }
  return leases;
}

/** Waits until the acquire is granted, and gives its lease. */
export async function granted(
  context: CaseContext,
  { settled, lease }: Waiter,
  withinMs = context.timing.slackMs,
): Promise<Lease> {
  await context.until('the waiter is granted', () => settled() !== undefined, withinMs);
  return lease;
}

/** Shows whether a promise has settled, and handles its rejection. */
export function watch(work: Promise<unknown>): { readonly settled: boolean } {
  const watched = { settled: false };
  const settle = (): void => {
    watched.settled = true;
  };
  work.then(settle, settle);
  return watched;
}
