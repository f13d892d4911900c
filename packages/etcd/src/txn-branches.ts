import type { AcquireRequest, LockMode } from '@locks/core/backend';
import type { ICompare, IRequestOp } from 'etcd3';
import type { Acquisition } from './acquisition.ts';
import {
  absent,
  hangsOn,
  inAccordWith,
  modifiedAt,
  noExclusiveHold,
  nothingBefore,
  nothingIn,
  onlySharedHolds,
  onlyWaiters,
  present,
  remove,
  when,
} from './conditions.ts';
import { encodeHold, encodeWaiter, type EtcdEntry } from './etcd-entry.ts';
import type { EtcdLease } from './lease-pool.ts';
import type { KeyRange } from './keys.ts';
import { type EtcdWaiterSession, sessionStands } from './waiter-session.ts';

/** Writes, and the conditions under which they are correct. */
export interface TxnBranch {
  readonly conditions: ICompare[];
  readonly writes: IRequestOp[];
}

/** Writes the hold of an acquisition; `rank` tells the grants of one transaction apart. */
export function putHold({ key, request, position }: Acquisition, lease: EtcdLease, rank: number): IRequestOp {
  // A permit that was queued under another limit is granted under the current one.
  const value = encodeHold({ mode: position?.mode ?? request.mode, label: request.label, rank }, undefined);
  return { request_put: { key, value, lease: lease.id } };
}

export function holdBranches(acquisition: Acquisition, lease: EtcdLease): TxnBranch[] {
  const { key, range, request } = acquisition;
  const writes = [putHold(acquisition, lease, 0)];
  const alone: TxnBranch = { conditions: [nothingIn(range)], writes };
  if (request.mode.kind !== 'shared') return [alone];
  // A late copy of this write must not move the hold back to this lease, which a renewal may have ended.
  return [{ conditions: [absent(key), ...onlySharedHolds(range)], writes }, alone];
}

/** Queues acquisitions of one resource whose modes do not conflict: all of them, in this order, or none. */
export function queueBranches(
  acquisitions: readonly Acquisition[],
  session: EtcdWaiterSession,
  alsoAlone: boolean,
): TxnBranch[] {
  const [first] = acquisitions;
  if (first === undefined) return [];
  const { range, request } = first;
  const writes = acquisitions.map(({ key, request: { mode, label } }, rank) => {
    return { request_put: { key, value: encodeWaiter({ mode, label, rank }), lease: session.lease } };
  });
  const keysAbsent = acquisitions.map(({ key }) => absent(key));
  const stands = sessionStands(session);
  return [
    { conditions: [stands, ...keysAbsent, ...inAccordWith(range, request.mode)], writes },
    ...(alsoAlone ? [{ conditions: [stands, nothingIn(range)], writes }] : []),
  ];
}

/** The operation that runs the first branch whose conditions hold, or else `otherwise`. */
export function firstMatching(branches: readonly TxnBranch[], otherwise: readonly IRequestOp[]): IRequestOp {
  const [first, ...rest] = branches;
  if (first === undefined) return when([], [...otherwise]);
  return when(
    first.conditions,
    first.writes,
    rest.length === 0 ? [...otherwise] : [firstMatching(rest, otherwise)],
  );
}

/** What is known of the queue when an acquisition claims its turn. */
export type ClaimBasis =
  /** Nothing is known. */
  | { readonly type: 'unread' }
  /**
   * A read has shown that nobody ahead keeps the acquisition from holding. `asOf`: the revision of its entry in that read; `undefined`
   * where the entry was a hold.
   */
  | { readonly type: 'free'; readonly asOf: number | undefined }
  /** The entry with the key `after`, the nearest ahead, was deleted while it held alone. */
  | { readonly type: 'next'; readonly after: Buffer };

/**
 * The conditions that make a claim safe whatever was read before; `undefined` if the queue must be read first. Later
 * entries are behind this position, except for a hold that was stolen.
 */
export function claimConditions(acquisition: Acquisition, basis: ClaimBasis): ICompare[] | undefined {
  const { range, key, position, request, stealMark } = acquisition;
  if (position === undefined) return undefined;
  // A grant by an earlier claim, or another limit, would have written the key again.
  const asBefore = modifiedAt(key, position.modRevision);
  const conditions = [asBefore, ...holdsAllow(range, request.mode)];
  switch (request.mode.kind) {
    case 'exclusive':
      // No entry was ahead of the hold that held alone, or between the two: only a steal may hold. So the server need not
      // compare the whole queue for each hand-off.
      if (basis.type === 'next') return [asBefore, absent(basis.after), absent(stealMark)];
      // Entries of one batch have the same revision: only a read tells which is first.
      if (acquisition.mayHaveBatchAhead && basis.type !== 'free') return undefined;
      return [...conditions, nothingBefore(range, position.createRevision)];
    case 'shared':
      return basis.type === 'free' ? conditions : undefined;
    case 'permit':
      // A later read may have found what a steal has written to the entry: only the entry as it was then is free.
      return basis.type === 'free' ? [modifiedAt(key, basis.asOf ?? position.modRevision)] : undefined;
    default:
      return request.mode satisfies never;
  }
}

/** The conditions on the holds of a resource under which a waiter may hold too, once a read has shown its turn. */
export function holdsAllow(range: KeyRange, mode: LockMode): ICompare[] {
  switch (mode.kind) {
    case 'exclusive':
      return [onlyWaiters(range)];
    case 'shared':
      // No writer waits ahead, and none will: only a steal may hold exclusively.
      return [noExclusiveHold(range)];
    case 'permit':
      // The read can only become stale by a steal, which writes the entries of waiters again.
      return [];
    default:
      return mode satisfies never;
  }
}

/** Whether a request was granted ahead of the queue: it stole the resource, or adopted the hold of another. */
export function isAheadOfQueue({ steal, adopts }: AcquireRequest): boolean {
  return steal === true || adopts !== undefined;
}

/** Writes the mark that lasts from a steal to the end of its hold, so that no claim overlooks that hold. */
export function markSteal(key: Buffer, lease: EtcdLease): IRequestOp {
  return { request_put: { key, value: Buffer.from(''), lease: lease.id } };
}

/** Removes the mark of a steal, unless another acquisition has stolen the resource since. */
export function unmarkSteal({ stealMark: key, request, lease }: Acquisition): IRequestOp[] {
  if (!isAheadOfQueue(request) || lease === undefined) return [];
  return [when([hangsOn(key, lease.id)], [remove(key)])];
}

/**
 * Makes the operations of a steal on one entry. Waiters for permits are written again, so that claims based on earlier reads
 * fail.
 */
export function endedBySteal(entry: EtcdEntry, mode: LockMode): IRequestOp[] {
  if (entry.held) return [{ request_delete_range: { key: entry.key } }];
  if (mode.kind !== 'permit') return [];
  const again = { request_put: { key: entry.key, ignore_value: true, ignore_lease: true } };
  return [when([present(entry.key)], [again])];
}
