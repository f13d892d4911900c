import type { BackendCapabilities } from '../backend/types.ts';
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
  readonly run: (stage: Stage) => Promise<void>;
}

export const without = (reason: string): Missing => ({ missing: 'capability', reason });
export const noHook = (name: string): Missing => ({ missing: 'hook', reason: `the harness has no ${name}` });

/** Needs clients of the same store in other processes. */
export function needsProcesses(capabilities: BackendCapabilities): Missing | undefined {
  return capabilities.reach === 'process' ? without('the store is inside one process') : undefined;
}

/** The absence of `needsProcesses`: another process has another store. */
export async function processesAreApart(stage: Stage): Promise<void> {
  const name = stage.name();
  const mine = await (await stage.client()).locks.lock(name).acquire();
  const child = await stage.child();
  const theirs = await child.tryAcquire(name);
  if (theirs === undefined) throw new Error('reach is declared as one process, but another process was excluded');
  await mine.release();
}

export function needsFifo(capabilities: BackendCapabilities): Missing | undefined {
  return capabilities.order === 'fifo' ? undefined : without('no order is declared');
}

export function needsLeaseTenure(capabilities: BackendCapabilities): Missing | undefined {
  return capabilities.tenure === 'lease' ? undefined : without('a session, not a ttl, ends an abandoned hold');
}
