import type { LockManager } from '@locks/core';
import type { HolderChecks } from '../checks/holder-checks.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import type { ResourcePlan } from './plan.ts';

/** What the operations of one process share. */
export interface OperationContext {
  readonly process: SimulatedProcess;
  readonly locks: LockManager;
  readonly resources: readonly ResourcePlan[];
  readonly checks: HolderChecks;
  /** No fault happens in this run: what fails is a violation. */
  readonly isClean: boolean;
  /** A message takes this long, and up to as much again, in milliseconds. */
  readonly latencyMs: number;
  /** How long a message may be on its way, in milliseconds. */
  readonly longestDelayMs: number;
  readonly isClosing: () => boolean;
  readonly isClosed: () => boolean;
  /** The user was told that an acquire failed. */
  readonly gaveUp: (label: string) => void;
}
