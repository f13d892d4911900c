import type { AcquireRequest, Grant } from '../backend/types.ts';
import type { Engine } from '../engine.ts';
import { acquiredIsWatched, publish } from '../events.ts';
import type { ResolvedOptions } from '../options.ts';
import { Hold, isLossReason } from '../tenure/hold.ts';

/**
 * Makes a checked grant a hold that is kept alive. `undefined`: it came too late to be of use, and an expired lease is
 * never handed out (docs/spec.md §1.4).
 */
export function takeUp(
  engine: Engine,
  grant: Grant,
  { ttlMs, autoRenew, maxHoldMs, minRemainingMs }: ResolvedOptions,
  now: number,
): Hold | undefined {
  const hold = new Hold(engine, grant, ttlMs, autoRenew, maxHoldMs, now);
  if (hold.deadline - now <= minRemainingMs) return undefined;
  engine.keeper.add(hold);
  if (grant.lost !== undefined) followLoss(hold, grant.lost);
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

function followLoss(hold: Hold, lost: AbortSignal): void {
  const tell = (): void => hold.lose(isLossReason(lost.reason) ? lost.reason : 'session-lost');
  if (lost.aborted) return tell();
  lost.addEventListener('abort', tell, { once: true });
  hold.unfollow = () => lost.removeEventListener('abort', tell);
}
