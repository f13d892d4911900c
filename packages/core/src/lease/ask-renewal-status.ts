import type { Call, RenewalStatus } from '../backend/types.ts';
import { CLOSED } from '../call/call-deadlines.ts';
import type { ManagerCore } from '../manager-core.ts';
import type { LeaseState } from '../lifetime/lease-state.ts';
import { renewalStatusOf } from '../lifetime/renewal-status.ts';

/**
 * Sends a call that the holder of a lease requested. Returns the status while the store still holds the lease; `undefined`
 * after a loss, which is then recorded in the lease.
 *
 * @throws LockError `LOCK_BACKEND` where the store gave no clear answer, `LOCK_CLOSED`
 */
export async function askRenewalStatus(
  core: ManagerCore,
  lease: LeaseState,
  doing: string,
  limitMs: number,
  send: (call: Call) => Promise<readonly RenewalStatus[]>,
): Promise<Extract<RenewalStatus, { status: 'held' }> | undefined> {
  const { resource } = lease.grant.request;
  const renewalStatus = renewalStatusOf(await core.ask(doing, resource, send, limitMs, CLOSED), 0);
  switch (renewalStatus.status) {
    case 'held':
      return renewalStatus;
    case 'lost':
      lease.lose(renewalStatus.reason);
      return undefined;
    case 'unknown':
      throw core.backendError(doing, resource, renewalStatus.error);
    default:
      return renewalStatus satisfies never;
  }
}
