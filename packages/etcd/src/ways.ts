import type { LockMode } from '@locks/core/backend';
import type { ICompare, IRequestOp } from 'etcd3';
import type { Acquisition } from './acquisition.ts';
import {
  absent,
  inAccordWith,
  modifiedAt,
  noExclusiveHold,
  nothingBefore,
  nothingIn,
  onlySharedHolds,
  onlyWaiters,
  present,
  when,
} from './conditions.ts';
import { encodeWaiter, type Entry } from './entry.ts';
import { putHold } from './hold-writes.ts';
import type { Lease } from './leases.ts';
import type { Turn } from './turn.ts';
import { type Session, sessionStands } from './waiter-session.ts';

/** More conditions than this are not worth their weight: the state is read first. */
const MOST_CONDITIONS = 32;

/** A write, and when it is right. */
export interface Way {
  readonly conditions: ICompare[];
  readonly writes: IRequestOp[];
}

export function waysToHold(acquisition: Acquisition, lease: Lease): Way[] {
  const { range, request } = acquisition;
  const writes = [putHold(acquisition, lease)];
  const alone: Way = { conditions: [nothingIn(range)], writes };
  return request.mode.kind === 'shared' ? [{ conditions: onlySharedHolds(range), writes }, alone] : [alone];
}

/** For acquisitions of one resource whose modes are in accord: all of them, in this order, or none. */
export function waysToQueue(
  acquisitions: readonly Acquisition[],
  session: Session,
  alsoAlone: boolean,
): Way[] {
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

/** The first way whose conditions hold. */
export function firstOf(ways: readonly Way[]): IRequestOp {
  const [first, ...rest] = ways;
  if (first === undefined) return when([], []);
  return when(first.conditions, first.writes, rest.length === 0 ? [] : [firstOf(rest)]);
}

/**
 * What makes a claim safe whatever was read before; `undefined` where the state must be read first. Nothing that is
 * added later stands before this place, but for what is stolen.
 */
export function claimConditions(acquisition: Acquisition, turn: Turn | undefined): ICompare[] | undefined {
  const { key, range, place, request } = acquisition;
  if (place === undefined) return undefined;
  // A grant by an earlier claim, or another limit, would have written it again.
  const asBefore = modifiedAt(key, place.modRevision);
  switch (request.mode.kind) {
    case 'exclusive':
      // Their revision is the same: only a look tells who is first.
      if (acquisition.mayHaveMatesAhead && turn?.status !== 'free') return undefined;
      return [asBefore, nothingBefore(range, place.createRevision), onlyWaiters(range)];
    case 'shared': {
      if (turn === undefined) return undefined;
      const writers = turn.status === 'free' ? [] : turn.by.filter(({ held }) => !held);
      if (writers.length > MOST_CONDITIONS) return undefined;
      return [asBefore, noExclusiveHold(range), ...writers.map((writer) => absent(writer.key))];
    }
    case 'permit':
      // A theft, which alone could make it wrong, writes the entries of waiters again.
      return turn?.status === 'free' ? [asBefore] : undefined;
    default:
      return request.mode satisfies never;
  }
}

/** What a thief does to an entry. Its write ends the claims of permits that were judged on what was before. */
export function theft(entry: Entry, mode: LockMode): IRequestOp[] {
  if (entry.held) return [{ request_delete_range: { key: entry.key } }];
  if (mode.kind !== 'permit') return [];
  const again = { request_put: { key: entry.key, ignore_value: true, ignore_lease: true } };
  return [when([present(entry.key)], [again])];
}
