import type { BackendCapabilities, BackendFeature } from '../backend/types.ts';
import { isLockError } from '../errors.ts';
import type { Harness } from './harness.ts';
import type { Stage } from './stage.ts';

export const GROUPS = [
  'exclusion',
  'ownership',
  'expiry',
  'renewal',
  'loss',
  'fencing',
  'waiting',
  'fairness',
  'reentrancy',
  'shared',
  'permits',
  'all',
  'steal',
  'abort',
  'session',
  'names',
  'idempotence',
  'close',
  'faults',
] as const;

export type Group = (typeof GROUPS)[number];

/**
 * Why a case does not run. `capability`: the backend does not have it; then `refused` is run instead, which asserts that
 * asking for it is refused. `hook`: the harness cannot do what the case needs, so it stays untested.
 */
export type Missing = { readonly missing: 'capability' | 'hook'; readonly reason: string };

export interface ConformanceCase {
  /** Stable: `group/what-holds`. */
  readonly id: `${Group}/${string}`;
  /** The clause of `docs/spec.md`: `§3.1`. */
  readonly clause: string;
  /** A sentence of behaviour. */
  readonly title: string;
  /** What the case needs and this backend or harness does not have. */
  readonly missing?: (capabilities: BackendCapabilities, harness: Harness) => Missing | undefined;
  /** With `missing: 'capability'`: asserts that asking for it is refused, or truly absent. */
  readonly refused?: (stage: Stage) => Promise<void>;
  /** It hurts the whole store, or keeps it busy without a pause: no other case runs beside it. */
  readonly alone?: true;
  readonly run: (stage: Stage) => Promise<void>;
}

export const without = (reason: string): Missing => ({ missing: 'capability', reason });
export const noHook = (name: string): Missing => ({ missing: 'hook', reason: `the harness has no ${name}` });

/** Needs clients of the same store in other processes. */
export function needsProcesses(capabilities: BackendCapabilities): Missing | undefined {
  return capabilities.reach === 'process' ? without('the store is inside one process') : undefined;
}

/** The absence of `needsProcesses`: another process has another store. */
export function processesAreApart(stage: Stage): Promise<void> {
  const known = apart.get(stage.harness) ?? provedApart(stage);
  apart.set(stage.harness, known);
  return known;
}

/** It is the same for all cases of a run, and takes a process. */
const apart = new WeakMap<Harness, Promise<void>>();

async function provedApart(stage: Stage): Promise<void> {
  const name = stage.name();
  const mine = await (await stage.client()).locks.lock(name).acquire();
  const child = await stage.child();
  const theirs = await child.tryAcquire(name);
  if (theirs === undefined)
    throw new Error('reach is declared as one process, but another process was excluded');
  await mine.release();
}

export function needsFifo(capabilities: BackendCapabilities): Missing | undefined {
  return capabilities.order === 'fifo' ? undefined : without('no order is declared');
}

/** Needs to see who waits. */
export function needsWaiters({ features }: BackendCapabilities): Missing | undefined {
  return features.includes('waiters') ? undefined : without('waiters are not shown');
}

/** The absence of `needsWaiters`: nobody is shown who waits. */
export async function waitersAreHidden(stage: Stage): Promise<void> {
  const name = stage.name();
  const lease = await (await stage.client()).locks.lock(name).acquire();
  const { locks } = await stage.client();
  const waiting = locks.lock(name).acquire();
  waiting.catch(() => {});
  await stage.sleep(stage.timing.slackMs / 4);
  const { waiters } = await locks.inspect(name);
  if (waiters.length > 0) throw new Error('the feature waiters is not declared, but inspect shows waiters');
  await lease.release();
  await (await waiting).release();
}

export function needsLeaseTenure(capabilities: BackendCapabilities): Missing | undefined {
  return capabilities.tenure === 'lease'
    ? undefined
    : without('a session, not a ttl, ends an abandoned hold');
}

/** The absence of `needsLeaseTenure`: a hold outlives its ttl, renewed or not. */
export async function ttlEndsNothing(stage: Stage): Promise<void> {
  const [holder, other] = [await stage.client(), await stage.client()];
  for (let round = 1; ; round += 1) {
    const name = stage.name(`round ${round}`);
    const lease = await holder.locks.lock(name).acquire({ ttlMs: stage.timing.ttlMs, renewal: 'manual' });
    await stage.sleep(stage.timing.ttlMs + stage.timing.slackMs);
    const taken = await other.locks.lock(name).tryAcquire();
    if (taken === undefined) return await lease.release();
    // On a machine that stood still the session itself may have ended, which its holder knows: that shows nothing.
    const { aborted, reason } = lease.signal;
    if (round === 3 || !aborted || !isLockError(reason) || reason.reason !== 'session-lost')
      throw new Error('tenure is declared as a session, but a hold ended by its ttl');
    await taken.release();
  }
}

export function needsFencing(capabilities: BackendCapabilities): Missing | undefined {
  return capabilities.fencing === 'none' ? without('no fencing token is declared') : undefined;
}

/** The absence of `needsFencing`: a lease has no token. */
export async function noTokenIsGiven(stage: Stage): Promise<void> {
  const lease = await (await stage.client()).locks.lock(stage.name()).acquire();
  if (lease.fencingToken !== undefined)
    throw new Error(`no token is declared, and the lease has ${lease.fencingToken}`);
  await lease.release();
}

export function needsFeature(feature: BackendFeature): NonNullable<ConformanceCase['missing']> {
  return ({ features }) =>
    features.includes(feature) ? undefined : without(`the feature ${feature} is not declared`);
}

/** The absence of `needsFeature('force-release')`: core refuses it. */
export async function forceReleaseIsRefused(stage: Stage): Promise<void> {
  const { locks } = await stage.client();
  await refusesAsUnsupported(() => locks.forceRelease(stage.name()));
}

/** The absence of `needsFeature('list')`: core refuses it. */
export async function listIsRefused(stage: Stage): Promise<void> {
  const { locks } = await stage.client();
  await refusesAsUnsupported(() => locks.list()[Symbol.asyncIterator]().next());
}

export async function refusesAsUnsupported(ask: () => Promise<unknown>): Promise<void> {
  try {
    await ask();
  } catch (error) {
    if (isLockError(error, 'LOCK_UNSUPPORTED')) return;
    throw error;
  }
  throw new Error('what is not declared was not refused with LOCK_UNSUPPORTED');
}
