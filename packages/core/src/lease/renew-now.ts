import { CLOSED } from '../call/call-deadlines.ts';
import type { ManagerCore } from '../manager-core.ts';
import { checkTtl } from '../options.ts';
import type { LeaseState } from '../tenure/lease-state.ts';
import { standingOf } from '../tenure/standing.ts';

/**
 * A renewal that the holder requests.
 *
 * @throws LockError `LOCK_LOST`, `LOCK_BACKEND`, `LOCK_INVALID_ARGUMENT`
 */
export async function renewNow(
  core: ManagerCore,
  lease: LeaseState,
  ttlMs: number | undefined,
): Promise<void> {
  const { backend } = core;
  const { resource } = lease.grant.request;
  const ttl = ttlMs === undefined ? lease.ttlMs : checkTtl(ttlMs, backend.capabilities.ttl, 'renew(): ttlMs');
  const sentAt = core.now();
  lease.ttlMs = ttl;
  const renewal = lease.renewalSent(ttl, sentAt, true);
  const limitMs = lease.deadline - sentAt;
  core.monitor.reschedule(lease);
  const answer = await core.ask(
    'renew',
    resource,
    limitMs,
    // The call goes on after its caller got `LOCK_BACKEND` for want of an answer.
    async (call) => {
      try {
        return await backend.renew([{ grant: lease.grant, ttlMs: ttl }], call);
      } finally {
        renewal.unclear = true;
      }
    },
    CLOSED,
  );
  const standing = standingOf(answer, 0);
  switch (standing.status) {
    case 'held':
      lease.renewed(renewal, standing.validForMs);
      core.monitor.reschedule(lease);
      if (lease.lost !== undefined) throw lease.lost;
      return;
    case 'lost':
      lease.lose(standing.reason);
      if (lease.lost !== undefined) throw lease.lost;
      return;
    case 'unknown':
      throw core.backendError('renew', resource, standing.error);
    default:
      return standing satisfies never;
  }
}
