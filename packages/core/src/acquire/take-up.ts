import type { AcquireRequest, Grant } from '../backend/types.ts';
import type { Engine } from '../engine.ts';
import { acquiredIsWatched, publish } from '../events.ts';
import { followSignal } from '../follow-signal.ts';
import type { ResolvedOptions } from '../options.ts';
import { Hold, isLossReason, type Since } from '../tenure/hold.ts';
import { tellOverdue } from '../tenure/keeper.ts';

/** Why a grant was given back. */
export const USELESS_GRANT = 'the grant arrived lost, or with too little of its ttl left';

/**
 * Makes a checked grant a hold that is kept alive. `undefined`: it came too late to be of use, or is lost already, and
 * such a lease is never handed out (docs/spec.md §1.4).
 */
export function takeUp(
  engine: Engine,
  grant: Grant,
  { ttlMs, autoRenew, maxHoldMs, minRemainingMs }: ResolvedOptions,
  now: number,
  since: Since = grant,
): Hold | undefined {
  tellOverdue();
  const hold = new Hold(engine, grant, ttlMs, autoRenew, maxHoldMs, now, since);
  const { lost } = grant;
  if (hold.deadline - now <= minRemainingMs || lost?.aborted) return undefined;
  engine.keeper.add(hold);
  if (lost !== undefined) {
    const tell = (): void => hold.lose(isLossReason(lost.reason) ? lost.reason : 'session-lost');
    hold.unfollow = followSignal(lost, tell);
  }
  return hold;
}

export function reportAcquired(
  engine: Engine,
  { resource, acquisitionId }: AcquireRequest,
  { fencingToken }: Grant,
  waitedMs: number,
): void {
  if (!acquiredIsWatched()) return;
  publish('locks:acquired', { resource, backend: engine.backendName, acquisitionId, waitedMs, fencingToken });
}
