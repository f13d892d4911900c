import type { LockMode } from '@locks/core/backend';
import type { ICompare, IRequestOp } from 'etcd3';
import { permitTag, TAGS } from './entry.ts';
import type { KeyRange } from './keys.ts';

// Conditions on a range hold when they hold for every key in it. On an empty range a condition on revisions sees 0, and
// one on values fails.

export function nothingIn(range: KeyRange): ICompare {
  return { ...range, target: 'Create', result: 'Equal', create_revision: 0 };
}

/** Nothing was added or changed after a revision; what went is not seen. */
export function unchangedSince(range: KeyRange, revision: number): ICompare {
  return { ...range, target: 'Mod', result: 'Less', mod_revision: revision + 1 };
}

/** `revision` is the oldest there is. */
export function nothingBefore(range: KeyRange, revision: number): ICompare {
  return { ...range, target: 'Create', result: 'Greater', create_revision: revision - 1 };
}

export function absent(key: Buffer): ICompare {
  return { key, target: 'Create', result: 'Equal', create_revision: 0 };
}

export function present(key: Buffer): ICompare {
  return { key, target: 'Create', result: 'Greater', create_revision: 0 };
}

export function createdAt(key: Buffer, revision: number): ICompare {
  return { key, target: 'Create', result: 'Equal', create_revision: revision };
}

export function modifiedAt(key: Buffer, revision: number): ICompare {
  return { key, target: 'Mod', result: 'Equal', mod_revision: revision };
}

export function onlySharedHolds(range: KeyRange): ICompare[] {
  return valuesBetween(range, TAGS.sharedHold, TAGS.afterHolds);
}

/** All that is there waits. */
export function onlyWaiters(range: KeyRange): ICompare {
  return { ...range, target: 'Value', result: 'Greater', value: Buffer.from(TAGS.afterHolds) };
}

/** What holds there, shares. */
export function noExclusiveHold(range: KeyRange): ICompare {
  return { ...range, target: 'Value', result: 'Greater', value: Buffer.from(TAGS.sharedHold) };
}

/** There is something, and nothing of it contradicts the mode. */
export function inAccordWith(range: KeyRange, mode: LockMode): ICompare[] {
  return mode.kind === 'permit'
    ? valuesBetween(range, permitTag(mode.limit), `${permitTag(mode.limit)}z`)
    : valuesBetween(range, TAGS.readersAndWriters, TAGS.afterReadersAndWriters);
}

function valuesBetween(range: KeyRange, from: string, to: string): ICompare[] {
  return [
    { ...range, target: 'Value', result: 'Greater', value: Buffer.from(from) },
    { ...range, target: 'Value', result: 'Less', value: Buffer.from(to) },
  ];
}

export function read(range: KeyRange | { readonly key: Buffer }): IRequestOp {
  return { request_range: range };
}

export function remove(key: Buffer): IRequestOp {
  return { request_delete_range: { key } };
}

export function when(compare: ICompare[], success: IRequestOp[], failure: IRequestOp[] = []): IRequestOp {
  return { request_txn: { compare, success, failure } };
}
