import type { Call, Grant } from '@locks/core/backend';
import type { Acquisition, Hold } from './acquisition.ts';
import type { Entry } from './entry.ts';
import type { Renewed } from './keep-alive.ts';
import type { Lease, Leases } from './leases.ts';
import { NoAnswerError } from './retryable.ts';

/** How sure it is that a lease lasts, on the clock of the call. */
export interface Validity {
  readonly countedFrom: number;
  readonly ttlSeconds: number;
}

/**
 * A keep-alive counts only if its server had heard of the newest leader that a transaction of the same time was
 * answered under. A leader that was replaced while it stood still answers keep-alives all the same, from what it
 * remembers, and for a lease that its successor granted it says that there is none; its successor gave every lease its
 * full ttl, counted from an election before ours.
 */
export function counts(renewed: Renewed, raftTerm: number): boolean {
  return renewed.raftTerm >= raftTerm;
}

/** A keep-alive that is sent along with a transaction; `undefined` for a lease that was granted for it just now. */
export function keepAliveFor(leases: Leases, lease: Lease): Promise<Renewed> | undefined {
  if (lease.fresh) return undefined;
  const renewal = leases.renew(lease);
  renewal.catch(() => {});
  return renewal;
}

/** How long a lease lasts at least, after a transaction that was sent at `sentAt`. `undefined`: it is no more. */
export async function validityOf(
  leases: Leases,
  lease: Lease,
  sentAt: number,
  raftTerm: number,
  renewal: Promise<Renewed> | undefined,
): Promise<Validity | undefined> {
  if (renewal === undefined) return { countedFrom: lease.grantedFrom, ttlSeconds: lease.ttlSeconds };
  for (const again of [false, true]) {
    const renewed = await (again ? leases.renew(lease) : renewal.catch(() => undefined));
    if (renewed !== undefined && counts(renewed, raftTerm)) {
      return renewed.ttlSeconds === 0 ? undefined : { countedFrom: sentAt, ttlSeconds: renewed.ttlSeconds };
    }
  }
  throw new NoAnswerError('the cluster changed its leader: how long the lease lasts is not known');
}

/** Takes note that an acquisition holds, and makes its grant. */
export function holdOf(
  acquisition: Acquisition,
  own: Entry,
  lease: Lease,
  validity: Validity,
  call: Call,
): Hold {
  const { request } = acquisition;
  const lost = new AbortController();
  const validForMs = validity.ttlSeconds * 1_000;
  const grant: Grant = {
    request,
    fencingToken: own.token,
    countedFrom: validity.countedFrom,
    ...(validForMs === request.ttlMs ? undefined : { validForMs }),
    lost: lost.signal,
  };
  const hold: Hold = {
    grant,
    token: own.token,
    createRevision: own.createRevision,
    lost,
    lease,
    shared: own.mode.kind === 'shared',
    endsAt: performance.now() + validForMs - (call.now() - validity.countedFrom),
  };
  lease.fresh = false;
  acquisition.hold = hold;
  acquisition.lease = lease;
  return hold;
}
