import type { FaultName } from './faults.ts';

/**
 * `kept`: the promise was tested, and nothing broke it. `not tested`: nothing happened in the run that could have broken it. `not promised`:
 * the locks declare no such promise.
 */
export type Verdict = 'kept' | 'broken' | 'not tested' | 'not promised';

/** What a run showed of one promise. */
export interface PromiseProof {
  /** A short name: `exclusion`. */
  readonly id: string;
  /** The promise in a sentence. */
  readonly promise: string;
  /** The clauses of docs/spec.md. */
  readonly clauses: readonly string[];
  /** How often it was tested. */
  readonly tested: number;
  /** What one test was, in the plural. */
  readonly tests: string;
  readonly verdict: Verdict;
  /** What was measured. */
  readonly measured?: string;
  /** How often it was broken. */
  readonly broken: number;
  /** The first of the breaches, in sentences. */
  readonly breaches: readonly string[];
}

/** How often a fault was made. */
export interface FaultProof {
  readonly fault: FaultName;
  /** What it is, in a sentence. */
  readonly about: string;
  readonly times: number;
}

/** The outcome of the conformance suite. */
export interface SuiteProof {
  readonly passed: number;
  /** The failed cases, with their reasons. */
  readonly failed: readonly { readonly id: string; readonly reason: string }[];
  /** Cases that do not apply, or need hooks that the module does not have. */
  readonly untested: number;
}

/** A hold of the timeline; times are milliseconds from the start of the run. */
export interface TimelineHold {
  readonly lane: number;
  /** The name of the lock without its prefix. */
  readonly lock: string;
  readonly from: number;
  readonly until: number;
  readonly end: 'released' | 'lost' | 'crashed' | 'open';
}

/** A fault of the timeline; times are milliseconds from the start of the run. */
export interface TimelineStrike {
  readonly lane: number;
  readonly fault: FaultName;
  readonly from: number;
  readonly until: number;
  /** What was done. */
  readonly detail: string;
}

/** Who held what when, and what was done to whom. */
export interface Timeline {
  /** How many lines it has: one for each worker with those that replaced it. */
  readonly lanes: number;
  readonly holds: readonly TimelineHold[];
  readonly strikes: readonly TimelineStrike[];
}

/** What a run of `prove()` showed. It survives JSON. */
export interface Proof {
  /** The version of this form. */
  readonly schema: 1;
  /** Whether no promise was broken. */
  readonly kept: boolean;
  /** The name of the backend, or of the library. */
  readonly backend: string;
  /** The beginning, ISO 8601. */
  readonly startedAt: string;
  /** For how long the workers ran, in milliseconds. */
  readonly ranMs: number;
  /** Whether it ended before its time was over. */
  readonly endedEarly: boolean;
  readonly seed: number;
  readonly workers: number;
  /** How long a hold lasted without a renewal, or a session without a message, in milliseconds. */
  readonly ttlMs: number;
  /** The median time of a pair of acquire and release before the first fault, in milliseconds. */
  readonly pairMs: number;
  /** How many calls the workers made, and how many of them were granted. */
  readonly calls: number;
  readonly grants: number;
  readonly promises: readonly PromiseProof[];
  readonly faults: readonly FaultProof[];
  /** The servers to which workers connected, each behind proxies: `host:port`. */
  readonly servers: readonly string[];
  /** What could not be tested here, in sentences. */
  readonly untested: readonly string[];
  /** Absent where it did not run. */
  readonly suite?: SuiteProof;
  readonly timeline: Timeline;
}
