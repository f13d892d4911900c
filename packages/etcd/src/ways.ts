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
  readonly write: IRequestOp;
}

export function waysToHold(acquisition: Acquisition, lease: Lease): Way[] {
  const { range, request } = acquisition;
  const write = putHold(acquisition, lease);
  const alone: Way = { conditions: [nothingIn(range)], write };
  return request.mode.kind === 'shared' ? [{ conditions: onlySharedHolds(range), write }, alone] : [alone];
}

export function waysToQueue(acquisition: Acquisition, session: Session, alsoAlone: boolean): Way[] {
  const { key, range, request } = acquisition;
  const value = encodeWaiter({ mode: request.mode, label: request.label });
  const write = { request_put: { key, value, lease: session.lease } };
  const stands = sessionStands(session);
  return [
    { conditions: [stands, absent(key), ...inAccordWith(range, request.mode)], write },
    ...(alsoAlone ? [{ conditions: [stands, nothingIn(range)], write }] : []),
  ];
}

/** The first way whose conditions hold. */
export function firstOf(ways: readonly Way[]): IRequestOp {
  const [first, ...rest] = ways;
  if (first === undefined) return when([], []);
  return when(first.conditions, [first.write], rest.length === 0 ? [] : [firstOf(rest)]);
}

/**
 * What makes a claim safe whatever was read before; `undefined` where the state must be read first. Nothing that is
 * added later stands before this place, but for what is stolen.
 */
export function claimConditions(
  { key, range, place, request }: Acquisition,
  turn: Turn | undefined,
): ICompare[] | undefined {
  if (place === undefined) return undefined;
  // A grant by an earlier claim, or another limit, would have written it again.
  const asBefore = modifiedAt(key, place.modRevision);
  switch (request.mode.kind) {
    case 'exclusive':
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
