import type { LockManager } from '@locks/core';
import type { TransferTicket } from '@locks/core/transfer';
import type { ThreadPlan } from './plan.ts';
import type { CohortChecks } from '../checks/cohort-checks.ts';
import type { HolderChecks } from '../checks/holder-checks.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import type { LoadedLocks } from '../process/lock-code.ts';
import type { TransferPlan, ResourcePlan } from './plan.ts';

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
  /** A lease lasts as long as a session, whatever its ttl. */
  readonly isOfSession: boolean;
  /** Operators end holds, or take them. */
  readonly hasForcedEnds: boolean;
  /** Nothing fails but that processes stand still: nobody asks for the same twice. */
  readonly answersAtOnce: boolean;
  /** The same, and they may stand still in the middle of an iteration of their event loops: every request is answered. */
  readonly onlyStands: boolean;
  /** The application makes the store refuse calls: they are not tried again. */
  readonly isShared: boolean;
  readonly transfer: LoadedLocks['transfer'];
  /** Lets a process adopt a lease: what it does with it goes on beside the operation. */
  readonly adoptIn: (to: number, adoption: Adoption) => void;
  /** The user was told that a lease is released. */
  readonly released: (label: string, name: string, acquisitionId: string) => void;
  /**
   * A store of a quorum may grant an attempt, which the network repeats, after the time in which it had to answer: where others lose
   * the lease meanwhile, a renewal that was sent before takes it for lost.
   */
  readonly mayGrantLate: boolean;
  /** The store may fail in a way that nobody tries again. */
  readonly failsForGood: boolean;
  /** A read may give what was there before: a renewal that finds no hold takes it for ended. */
  readonly readsStale: boolean;
  /** The renewal thread of the process. */
  readonly thread: ThreadPlan | undefined;
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

/** A lease that another process goes on with. */
export interface Adoption {
  readonly ticket: TransferTicket;
  readonly label: string;
  readonly plan: TransferPlan;
  /** It is the only one of its ticket, and in time by far. */
  readonly mustSucceed: boolean;
}
