import { setTimeout as sleep } from 'node:timers/promises';
import type { AcquireOptions, LockManager } from '@locks/core';
import type { ManagerPair } from '../manager-pair.ts';
import type { Sample } from './figures.ts';

/** The number of contenders in the row `contended`, half of them on each connection. */
export const CONTENDERS = 8;
/** The ttl in milliseconds: how long a killed process leaves its locks. */
const TTL_MS = 10_000;
const WAIT_MS = 30_000;
/** Hand-offs that are not counted: the first ones open the connection for messages. */
const WARM_UP = 3;
/** The time for a waiter that cannot be listed to get into the queue, in milliseconds. */
const QUEUED_MS = 20;

/** The parameters of a row. */
export interface RowPlan {
  readonly pair: ManagerPair;
  /** The name of the locks, which nobody else uses. */
  readonly name: string;
  readonly forMs: number;
  /** Ends the row early. */
  readonly signal: AbortSignal;
}

/** Measures the round trip of a ping: the cost of the store and the network without any lock. */
export async function ping({ pair, forMs, signal }: RowPlan): Promise<Sample> {
  return await repeat(forMs, signal, async () => (await pair.one.ping({ answerMs: WAIT_MS })).tookMs);
}

/** Measures one lock that is acquired and released repeatedly, without contention. */
export async function uncontended({ pair, name, forMs, signal }: RowPlan): Promise<Sample> {
  return await repeat(forMs, signal, () => timed(() => takeAndRelease(pair.one, name, signal)));
}

/** Measures one lock under constant contention: each time is from the request to the release. */
export async function contended({ pair, name, forMs, signal }: RowPlan): Promise<Sample> {
  const contenders = Array.from({ length: CONTENDERS }, (_, index) =>
    repeat(forMs, signal, () =>
      timed(() => takeAndRelease(index % 2 === 0 ? pair.one : pair.other, name, signal)),
    ),
  );
  const samples = (await Promise.allSettled(contenders)).map((outcome) => {
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  });
  const tookMs = Math.max(...samples.map((sample) => sample.tookMs));
  return { times: samples.flatMap(({ times }) => times), tookMs };
}

/** Measures hand-offs between the two connections: each time is from the call of the release to the grant. */
export async function handOff(plan: RowPlan): Promise<Sample> {
  for (let count = 0; count < WARM_UP; count += 1) await handOffOnce(plan);
  return await repeat(plan.forMs, plan.signal, () => handOffOnce(plan));
}

async function handOffOnce({ pair, name, signal }: RowPlan): Promise<number> {
  const lease = await pair.one.lock(name).acquire(optionsWith(signal));
  let waits = true;
  const waiting = grantedAt(pair.other, name, signal).finally(() => (waits = false));
  // The release below may fail first.
  waiting.catch(() => undefined);
  let releasedAt: number;
  try {
    if (pair.one.capabilities.features.includes('waiters'))
      while (waits && (await pair.one.inspect(name)).waiters.length === 0) await sleep(1);
    else await sleep(QUEUED_MS);
  } finally {
    releasedAt = performance.now();
    await lease.release();
  }
  return (await waiting) - releasedAt;
}

/** Acquires the lock, releases it at once, and gives the time of the grant. */
async function grantedAt(locks: LockManager, name: string, signal: AbortSignal): Promise<number> {
  const lease = await locks.lock(name).acquire(optionsWith(signal));
  const at = performance.now();
  await lease.release();
  return at;
}

async function takeAndRelease(locks: LockManager, name: string, signal: AbortSignal): Promise<void> {
  const lease = await locks.lock(name).acquire(optionsWith(signal));
  await lease.release();
}

function optionsWith(signal: AbortSignal): AcquireOptions {
  return { ttlMs: TTL_MS, waitMs: WAIT_MS, label: 'locks bench', signal };
}

async function timed(work: () => Promise<void>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}

/** Repeats a measurement for `forMs` milliseconds, at least once. */
async function repeat(forMs: number, signal: AbortSignal, measure: () => Promise<number>): Promise<Sample> {
  const from = performance.now();
  const times: number[] = [];
  do {
    signal.throwIfAborted();
    times.push(await measure());
  } while (performance.now() - from < forMs);
  return { times, tookMs: performance.now() - from };
}
