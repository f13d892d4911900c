import type { Call, Standing } from '../backend/types.ts';
import { CLOSED } from '../call/call-deadlines.ts';
import type { ManagerCore } from '../manager-core.ts';
import type { LeaseState } from '../tenure/lease-state.ts';
import { standingOf } from '../tenure/standing.ts';

/**
 * Sends a call that the holder of a lease requested. Returns the standing while the store still holds the lease; `undefined`
 * after a loss, which is then recorded in the lease.
 *
 * @throws LockError `LOCK_BACKEND` where the store gave no clear answer, `LOCK_CLOSED`
 */
export async function askStanding(
  core: ManagerCore,
  lease: LeaseState,
  doing: string,
  limitMs: number,
  send: (call: Call) => Promise<readonly Standing[]>,
): Promise<Extract<Standing, { status: 'held' }> | undefined> {
  const { resource } = lease.grant.request;
  const standing = standingOf(await core.ask(doing, resource, limitMs, send, CLOSED), 0);
  switch (standing.status) {
    case 'held':
      return standing;
    case 'lost':
      lease.lose(standing.reason);
      return undefined;
    case 'unknown':
      throw core.backendError(doing, resource, standing.error);
    default:
      return standing satisfies never;
  }
}
