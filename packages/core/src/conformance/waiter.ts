import type { PermitOptions } from '../compose/semaphore.ts';
import type { LockManager } from '../create-locks.ts';
import type { Lease } from '../lease.ts';
import type { AcquireOptions } from '../options.ts';
import { Traffic } from './around-calls.ts';
import type { Client, Stage } from './stage.ts';

/** An acquire that was found contended and waits. */
export interface Waiter extends Client {
  readonly lease: Promise<Lease>;
  /** Settled or not, and how long after the start, in milliseconds. */
  readonly settled: () => number | undefined;
  readonly traffic: Traffic;
}

/** Starts to wait for a resource that is held, with a client of its own, and comes back when it stands in the queue. */
export function startWaiting(stage: Stage, name: string, options?: AcquireOptions): Promise<Waiter> {
  return startWaitingFor(stage, (locks) => locks.lock(name), options);
}

/** The same for a lock of any kind. */
export async function startWaitingFor(
  stage: Stage,
  lockOf: (locks: LockManager) => { acquire(options?: PermitOptions): Promise<Lease> },
  options?: PermitOptions,
): Promise<Waiter> {
  const traffic = new Traffic();
  const client = await stage.client({ wrap: traffic.wrap });
  const startedAt = performance.now();
  let settledAfter: number | undefined;
  const lease = lockOf(client.locks).acquire(options);
  const settled = (): void => {
    settledAfter = performance.now() - startedAt;
  };
  // The case awaits it when its time comes; until then nobody handles a rejection.
  lease.then(settled, settled);
  await stage.until('the first attempt of a waiter is answered', () => traffic.answersTo('attempt') > 0);
  return { ...client, lease, settled: () => settledAfter, traffic };
}

/** Whether a promise is settled by now. */
export function watch(work: Promise<unknown>): { readonly settled: boolean } {
  const watched = { settled: false };
  const settle = (): void => {
    watched.settled = true;
  };
  work.then(settle, settle);
  return watched;
}
