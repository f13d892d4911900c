import type { BackendCapabilities } from '../src/backend/types.ts';
import type { Harness } from './harness.ts';
import type { CaseContext } from './case-context.ts';

export const GROUPS = [
  'exclusion',
  'ownership',
  'expiry',
  'renewal',
  'blocked',
  'loss',
  'fencing',
  'waiting',
  'fairness',
  'cohort',
  'reentrancy',
  'shared',
  'permits',
  'all',
  'steal',
  'transfer',
  'abort',
  'session',
  'names',
  'idempotence',
  'close',
  'faults',
] as const;

/** The first part of the id of a case: what it is about. */
export type Group = (typeof GROUPS)[number];

/**
 * Why a case does not run. `capability`: the backend does not declare it; then `refused` runs instead, which asserts that a
 * request for it is refused. `hook`: the harness has no hook that the case needs, so the case stays untested.
 */
export type Missing = {
  /** Whether the backend lacks a capability, or the harness a hook. */
  readonly missing: 'capability' | 'hook';
  /** What is missing, in a few words. */
  readonly reason: string;
};

/** One promise of the specification, as a test. */
export interface ConformanceCase {
  /** A stable id: `group/what-holds`. */
  readonly id: `${Group}/${string}`;
  /** The clause of `docs/spec.md` that the case checks: `§3.1`. */
  readonly clause: string;
  /** The behaviour, in one sentence. */
  readonly title: string;
  /** Gives what the case needs and this backend or harness does not have. */
  readonly missing?: (capabilities: BackendCapabilities, harness: Harness) => Missing | undefined;
  /** Runs where a capability is missing: asserts that a request for it is refused, or that it is absent. */
  readonly refused?: (context: CaseContext) => Promise<void>;
  /** Marks a case whose failure makes many others fail: it runs before them, and its failure is reported at once. */
  readonly first?: true;
  /** Marks a case that disturbs the whole store or keeps it busy: no other case runs beside it. */
  readonly alone?: true;
  /** Does what the title says, and rejects where it does not hold. */
  readonly run: (context: CaseContext) => Promise<void>;
}

export const without = (reason: string): Missing => ({ missing: 'capability', reason });
export const noHook = (name: string): Missing => ({ missing: 'hook', reason: `the harness has no ${name}` });
