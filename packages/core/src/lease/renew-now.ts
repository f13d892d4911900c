import { askRenewalStatus } from './ask-renewal-status.ts';
import type { ManagerCore } from '../manager-core.ts';
import { checkTtl } from '../options.ts';
import type { LeaseState } from '../lifetime/lease-state.ts';

/**
 * Renews a lease at its holder's request.
 *
 * @throws LockError `LOCK_LOST`, `LOCK_BACKEND`, `LOCK_INVALID_ARGUMENT`
 */
export async function renewNow(
  core: ManagerCore,
  lease: LeaseState,
  ttlMs: number | undefined,
): Promise<void> {
  const { backend, protocol } = core;
  const ttl = ttlMs === undefined ? lease.ttlMs : checkTtl(ttlMs, backend.capabilities.ttl, 'renew(): ttlMs');
  const sentAt = core.now();
  lease.ttlMs = ttl;
  const renewal = lease.renewalSent(ttl, sentAt, true);
  const limitMs = lease.deadline - sentAt;
  core.monitor.reschedule(lease);
  // The call stays in flight after its caller got `LOCK_BACKEND` for want of an answer.
  const held = await askRenewalStatus(core, lease, 'renew', limitMs, async (call) => {
    try {
      return await protocol.calls.renew([{ grant: lease.grant, ttlMs: ttl }], call);
    } finally {
      renewal.unclear = true;
    }
  });
  if (held !== undefined) {
    lease.renewed(renewal, held.validForMs);
    core.monitor.reschedule(lease);
  }
  if (lease.lost !== undefined) throw lease.lost;
}
