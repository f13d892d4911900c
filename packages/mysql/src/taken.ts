import type { AcquireRequest, Grant } from '@locks/core/backend';
import type { LockState } from './lock-state.ts';

/** What is known of a row that was taken in one statement: all but when the hold ends, which stands in the row. */
export function takenState(request: AcquireRequest, version: number, token: number): LockState {
  const { acquisitionId: id, mode, label } = request;
  // A token is the time of its grant, in microseconds, wherever the clock did not go back.
  const hold = { id, mode, token, since: token, until: undefined, span: undefined };
  return { version, token, holds: [{ ...hold, ...(label !== undefined && { label }) }], places: [] };
}

export function takenGrant(request: AcquireRequest, token: number, countedFrom: number): Grant {
  return { request, fencingToken: BigInt(token), countedFrom };
}
