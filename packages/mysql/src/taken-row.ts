import type { AcquireRequest, Grant } from '@locks/core/backend';
import type { LockRow } from './lock-row.ts';

/** What is known of a row that was taken in one statement: all but the end of its hold, which only the row has. */
export function takenRow(request: AcquireRequest, version: number, token: number): LockRow {
  const { acquisitionId: id, mode, label } = request;
  // A token is the time of its grant, in microseconds, wherever the clock did not go back.
  const times = { since: token, until: undefined, span: undefined };
  const hold = { id, mode, label, token, ...times, stolen: false };
  return { version, token, holds: [hold], waiters: [] };
}

export function takenGrant(request: AcquireRequest, token: number, countedFrom: number): Grant {
  return { request, fencingToken: BigInt(token), countedFrom };
}
