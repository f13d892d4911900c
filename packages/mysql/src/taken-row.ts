import type { AcquireRequest, Grant } from '@locks/core/backend';
import type { LockRow } from './lock-row.ts';

/**
 * Makes the row that was taken in one statement, as far as it is known: all but the end of its hold, which only the row has.
 */
export function takenRow(request: AcquireRequest, version: number, token: number): LockRow {
  const { acquisitionId: id, mode, label } = request;
  // A token is the time of its grant in microseconds, unless the clock went back.
  const times = { since: token, until: undefined, span: undefined };
  const hold = { id, mode, label, token, ...times, stolen: false };
  return { version, token, holds: [hold], waiters: [] };
}

export function takenGrant(request: AcquireRequest, token: number, countedFrom: number): Grant {
  return { request, fencingToken: BigInt(token), countedFrom };
}
