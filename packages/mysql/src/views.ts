import type { Holder, ResourceState, Waiter } from '@locks/core/backend';
import { Draft } from './draft.ts';
import { absent, type Hold, type LockState, type Place } from './lock-state.ts';
import type { Snapshot } from './statements.ts';

/** What an operator sees: nothing that has ended, and nobody who is dead. */
export function liveState(
  resource: string,
  state: LockState | undefined,
  { now, alive }: Snapshot,
  client: string,
): ResourceState {
  const isAlive = (other: string): boolean => other === client || alive.has(other);
  const { holds, places } = new Draft(state ?? absent, { now, client, isAlive, isAwaited: () => false });
  return {
    resource,
    holders: holds.map((hold) => toHolder(hold, now)),
    waiters: places.map((place) => toWaiter(place, now)),
  };
}

export function toHolder({ id, mode, label, token, since, until }: Hold, now: number): Holder {
  return {
    acquisitionId: id,
    mode,
    ...(label !== undefined && { label }),
    fencingToken: BigInt(token),
    ...(since !== undefined && { heldForMs: Math.max(0, now - since) / 1_000 }),
    ...(until !== undefined && { expiresInMs: (until - now) / 1_000 }),
  };
}

function toWaiter({ id, mode, label, since }: Place, now: number): Waiter {
  return {
    acquisitionId: id,
    mode,
    ...(label !== undefined && { label }),
    ...(since !== undefined && { waitingForMs: Math.max(0, now - since) / 1_000 }),
  };
}
