import {
  checkBackend,
  invalidArgument,
  type LockBackend,
  milliseconds,
  optional,
  type OptionTable,
  readOptions,
  wholeNumber,
} from '@locks/core/backend';
import { MOST_TURNS } from './cohort-tokens.ts';

/** Limits on how long one process may keep a lease for its own waiters. */
export interface CohortOptions {
  /**
   * How many acquisitions of this process one lease may serve, the one that took it included. From 2 to 256.
   * @defaultValue 64
   */
  readonly turns?: number | undefined;
  /**
   * For how many milliseconds after its grant a lease may be passed on to the next waiter of this process. From 1 to 10 000.
   * @defaultValue 20
   */
  readonly withinMs?: number | undefined;
}

/** The options with every default filled in. */
export interface CohortLimits {
  readonly turns: number;
  readonly withinMs: number;
}

const TABLE = {
  turns: optional(wholeNumber(2, MOST_TURNS), 64),
  withinMs: optional(milliseconds(1, 10_000), 20),
} satisfies OptionTable<CohortOptions>;

/** @throws LockError `LOCK_INVALID_ARGUMENT` */
export function resolveCohort(backend: LockBackend, options?: CohortOptions): CohortLimits {
  const { name, capabilities, awaitTurn } = checkBackend(backend);
  if (capabilities.order !== 'fifo' || awaitTurn === undefined || !capabilities.modes.includes('exclusive')) {
    throw invalidArgument(
      `cohortBackend() takes a backend with order 'fifo', the mode 'exclusive' and the method awaitTurn; ${name} is none.`,
    );
  }
  return readOptions('cohortBackend()', options, TABLE);
}
