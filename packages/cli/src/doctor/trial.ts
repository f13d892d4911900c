import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AcquireOptions, Lease, LockManager } from '@locks/core';
import type { ManagerPair } from '../manager-pair.ts';
import { type AdapterWarning, collectWarnings } from './adapter-warnings.ts';

/** A step that failed on a store. */
export interface TrialFailure {
  /** The step that was tried: "take a lock". */
  readonly doing: string;
  readonly error: unknown;
}

export interface TrialResult {
  readonly failures: readonly TrialFailure[];
  /** The warnings of the adapters during the trial. */
  readonly warnings: readonly AdapterWarning[];
}

const LIMIT_MS = 5_000;
const TTL_MS = 10_000;
const LOOK_EVERY_MS = 10;

/**
 * Takes, hands off, renews and releases locks of a random name, in each mode that the store has. The trial ends at the first
 * failure of an exclusive lock: nothing else would work.
 */
export async function tryLocks(pair: ManagerPair): Promise<TrialResult> {
  const endCollection = collectWarnings();
  const failures: TrialFailure[] = [];
  const attempt = async (doing: string, work: () => Promise<unknown>): Promise<boolean> => {
    try {
      await work();
      return true;
    } catch (error) {
      failures.push({ doing, error });
      return false;
    }
  };
  const name = `locks-doctor-${randomUUID()}`;
  const works = await attempt('take and release a lock', () => takeAndRelease(pair.one, name));
  if (works) await otherModes(pair, name, attempt);
  return { failures, warnings: await endCollection() };
}

type Attempt = (doing: string, work: () => Promise<unknown>) => Promise<boolean>;

async function otherModes(pair: ManagerPair, name: string, attempt: Attempt): Promise<void> {
  const { one } = pair;
  const { modes, features } = one.capabilities;
  await attempt('wait for a lock', () => handOff(pair, `${name}-wait`));
  if (modes.includes('shared'))
    await attempt('take a lock that is shared', async () => {
      const lease = await one.readWriteLock(`${name}-shared`).read.acquire(options());
      await lease.release();
    });
  if (modes.includes('permit'))
    await attempt('take a permit', async () => {
      const lease = await one.semaphore(`${name}-permit`, 2).acquire(options());
      await lease.release();
    });
  if (features.includes('list'))
    await attempt('list the locks', async () => {
      for await (const _ of one.list(name)) break;
    });
}

async function takeAndRelease(locks: LockManager, name: string): Promise<void> {
  const lease = await locks.lock(name).acquire(options());
  try {
    await lease.renew();
  } finally {
    await lease.release();
  }
}

/** Tries a hand-off: one manager holds, the other waits and gets the lock. */
async function handOff({ one, other }: ManagerPair, name: string): Promise<void> {
  const lease = await one.lock(name).acquire(options());
  const waiting: Promise<Lease> = other.lock(name).acquire(options(2 * LIMIT_MS));
  const outcome = waiting.then(
    () => 'granted' as const,
    () => 'failed' as const,
  );
  try {
    // Where waiters cannot be listed, the waiter has queued by the end of the pause.
    if (one.capabilities.features.includes('waiters')) await Promise.race([outcome, seen(one, name)]);
    else await sleep(LOOK_EVERY_MS);
  } finally {
    await lease.release();
  }
  await (await waiting).release();
}

async function seen(locks: LockManager, name: string): Promise<void> {
  const until = performance.now() + LIMIT_MS;
  while ((await locks.inspect(name)).waiters.length === 0 && performance.now() < until)
    await sleep(LOOK_EVERY_MS);
}

function options(waitMs = LIMIT_MS): AcquireOptions {
  return { ttlMs: TTL_MS, waitMs };
}
