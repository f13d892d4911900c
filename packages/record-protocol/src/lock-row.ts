import type { LockRecord } from '@locks/core/rules';

/**
 * The holds and waiters of a resource, as its row says. Times are microseconds of the table's clock, near to those since 1970.
 */
export interface LockRow extends LockRecord {
  /** The id of the write that made the row, which no other write has. 0: there is no row. */
  readonly version: number;
  /** What the table itself needs to write over this row; `undefined` where it is not known. */
  readonly source?: unknown;
  /** The reason why the row could not be decoded: nothing may be decided on it. */
  readonly malformed?: Error;
}

export const NO_ROW: LockRow = { version: 0, token: 0, holds: [], waiters: [] };
