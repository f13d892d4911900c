import type { Grant } from '../backend/types.ts';
import { identityOf, publish } from '../events.ts';
import { followSignal } from '../follow-signal.ts';
import type { ManagerCore } from '../manager-core.ts';
import type { ResolvedOptions } from '../options.ts';
import { endOverdueLeases } from '../tenure/lease-monitor.ts';
import { isLossReason, LeaseState, type Validity } from '../tenure/lease-state.ts';

/** Why a grant was abandoned. */
export const USELESS_GRANT = 'the grant arrived lost, or with too little of its ttl left';

/**
 * Starts monitoring a validated grant. `undefined`: the grant came too late to be of use, or is lost already; such a lease is
 * never delivered (docs/spec.md §1.4).
 */
export function activateGrant(
  core: ManagerCore,
  grant: Grant,
  { ttlMs, autoRenew, maxHoldMs, minRemainingMs }: ResolvedOptions,
  now: number,
  validity: Validity = grant,
): LeaseState | undefined {
  endOverdueLeases();
  const lease = new LeaseState(core, grant, ttlMs, autoRenew, maxHoldMs, now, validity);
  const { lost } = grant;
  if (lease.deadline - now <= minRemainingMs || lost?.aborted) return undefined;
  core.monitor.add(lease);
  if (lost !== undefined) {
    lease.unfollow = followSignal(lost, () => {
      lease.lose(isLossReason(lost.reason) ? lost.reason : 'session-lost');
    });
  }
  return lease;
}

export function reportAcquired(core: ManagerCore, { request, fencingToken }: Grant, waitedMs: number): void {
  publish('locks:acquired', { ...identityOf(request, core.backendName), waitedMs, fencingToken });
}
