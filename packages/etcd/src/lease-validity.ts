import { type Call, type Grant, NoAnswerError } from '@locks/core/backend';
import type { Acquisition, EtcdHold } from './acquisition.ts';
import type { EtcdEntry } from './etcd-entry.ts';
import type { KeepAliveReply } from './keep-alive-stream.ts';
import { type EtcdLease, type LeasePool, RECENT_SHARE } from './lease-pool.ts';

/** The time that a lease is certain to last, on the clock of the call. */
export interface LeaseValidity {
  readonly countedFrom: number;
  readonly ttlSeconds: number;
}

/**
 * Whether a keep-alive counts: its server must know of the leader under which a transaction of the same time was
 * answered. A leader that was replaced while it was paused still answers keep-alives from its memory, and does not know
 * the leases that its successor granted. The successor gave every lease its full ttl again when it was elected.
 */
export function isFromCurrentLeader(renewed: Pick<KeepAliveReply, 'raftTerm'>, raftTerm: number): boolean {
  return renewed.raftTerm >= raftTerm;
}

/** Sends a keep-alive along with a transaction; `undefined` for a lease that was granted or renewed just now. */
export function keepAliveFor(leases: LeasePool, lease: EtcdLease): Promise<KeepAliveReply> | undefined {
  if (leases.isYounger(lease, RECENT_SHARE)) return undefined;
  const renewal = leases.renew(lease);
  renewal.catch(() => {});
  return renewal;
}

/** The minimum validity of a lease after a transaction that was sent at `sentAt`; `undefined` if the lease is gone. */
export async function validityOf(
  leases: LeasePool,
  lease: EtcdLease,
  sentAt: number,
  raftTerm: number,
  renewal: Promise<KeepAliveReply> | undefined,
  call: Call,
): Promise<LeaseValidity | undefined> {
  if (renewal === undefined && isFromCurrentLeader(lease.renewed, raftTerm)) {
    // Counted from before that renewal was sent, on the clock of the call (docs/spec.md §1.2).
    return { countedFrom: call.now() - leases.ageOf(lease), ttlSeconds: lease.ttlSeconds };
  }
  for (const again of [false, true]) {
    const renewed = await (again ? leases.renew(lease) : renewal?.catch(() => undefined));
    if (renewed !== undefined && isFromCurrentLeader(renewed, raftTerm)) {
      return renewed.ttlSeconds === 0 ? undefined : { countedFrom: sentAt, ttlSeconds: renewed.ttlSeconds };
    }
  }
  throw new NoAnswerError('the cluster changed its leader: how long the lease lasts is not known');
}

/** Records that an acquisition holds, and makes its grant. */
export function holdOf(
  acquisition: Acquisition,
  own: EtcdEntry,
  lease: EtcdLease,
  validity: LeaseValidity,
  call: Call,
): EtcdHold {
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
  const hold: EtcdHold = {
    grant,
    token: own.token,
    createRevision: own.createRevision,
    modRevision: own.modRevision,
    lost,
    lease,
    movedTo: undefined,
    mode: own.mode,
    endsAt: performance.now() + validForMs - (call.now() - validity.countedFrom),
  };
  acquisition.hold = hold;
  acquisition.lease = lease;
  return hold;
}
