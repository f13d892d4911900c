import type { LockManager } from '@locks/core';
import type { CohortChecks } from '../checks/cohort-checks.ts';
import type { HolderChecks } from '../checks/holder-checks.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import type { ResourcePlan } from './plan.ts';

/** What the operations of one process share. */
export interface OperationContext {
  readonly process: SimulatedProcess;
  readonly locks: LockManager;
  readonly resources: readonly ResourcePlan[];
  readonly checks: HolderChecks;
  /** Set where processes pass their leases on. */
  readonly cohortChecks: CohortChecks | undefined;
  /** No fault happens in this run: what fails is a violation. */
  readonly isClean: boolean;
  /** Operators end holds, or take them. */
  readonly hasForcedEnds: boolean;
  /** Nothing fails but that processes stand still: nobody asks for the same twice. */
  readonly answersAtOnce: boolean;
  /** The user was told that a lease is released. */
  readonly released: (label: string, name: string, acquisitionId: string) => void;
  /**
   * A store of a quorum may grant an attempt, which the network repeats, after the time in which it had to answer: where others lose
   * the lease meanwhile, a renewal that was sent before takes it for lost.
   */
  readonly mayGrantLate: boolean;
  /** A read may give what was there before: a renewal that finds no hold takes it for ended. */
  readonly readsStale: boolean;
  /** The time for a release grows by this at most, with what its process has to write before it, in milliseconds. */
  readonly releasesBeforeMs: number;
  /** A release without an answer is repeated for so long, or until its lease ends (docs/spec.md §2.5). */
  readonly releaseBudgetMs: number;
  /** A request takes this long, and up to as much again, and so does its reply, in milliseconds. */
  readonly latencyMs: number;
  /** How long a message may be on its way, in milliseconds. */
  readonly longestDelayMs: number;
  readonly isClosing: () => boolean;
  readonly isClosed: () => boolean;
  /** The user was told that an acquire failed. */
  readonly gaveUp: (label: string) => void;
}
