import type { Holder, ResourceState, Waiter } from '@locks/core/backend';
import { type HoldRecord, LockRules, type WaiterRecord } from '@locks/core/rules';
import { type LockRow, NO_ROW } from './lock-row.ts';
import type { Snapshot } from './lock-table.ts';

/** The state of a resource as an operator sees it: without holds that have ended, and without waiters that are dead. */
export function liveState(
  resource: string,
  row: LockRow | undefined,
  { now, alive }: Pick<Snapshot, 'now' | 'alive'>,
  client: string,
): ResourceState {
  const isAlive = (other: string): boolean => other === client || alive.has(other);
  const rules = new LockRules(row ?? NO_ROW, { client, isAlive });
  rules.expire(now);
  return {
    name: resource,
    holders: rules.holds.map((hold) => toHolder(hold, now)),
    waiters: rules.waiters.map((waiter) => toWaiter(waiter, now)),
  };
}

export function toHolder(
  { id, mode, label, token, since, until, isFirstSight }: HoldRecord,
  now: number,
): Holder {
  return {
    acquisitionId: id,
    mode,
    ...(label !== undefined && { label }),
    fencingToken: BigInt(token),
    ...(since !== undefined && { heldForMs: Math.max(0, now - since) / 1_000 }),
    ...(until !== undefined && isFirstSight !== true && { expiresInMs: (until - now) / 1_000 }),
  };
}

function toWaiter({ id, mode, label, since }: WaiterRecord, now: number): Waiter {
  return {
    acquisitionId: id,
    mode,
    ...(label !== undefined && { label }),
    ...(since !== undefined && { waitingForMs: Math.max(0, now - since) / 1_000 }),
  };
}
