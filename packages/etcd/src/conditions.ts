import type { LockMode } from '@locks/core/backend';
import type { ICompare, IRequestOp } from 'etcd3';
import { permitTag, TAGS } from './etcd-entry.ts';
import type { KeyRange } from './keys.ts';

// A condition on a range holds if it holds for every key in it. On an empty range a condition on revisions compares
// with 0, and a condition on values fails.

export function nothingIn(range: KeyRange): ICompare {
  return { ...range, target: 'Create', result: 'Equal', create_revision: 0 };
}

/** No key was added or changed after a revision; deletions go unnoticed. */
export function unchangedSince(range: KeyRange, revision: number): ICompare {
  return { ...range, target: 'Mod', result: 'Less', mod_revision: revision + 1 };
}

/** No key is older than `revision`. */
export function nothingBefore(range: KeyRange, revision: number): ICompare {
  return { ...range, target: 'Create', result: 'Greater', create_revision: revision - 1 };
}

export function absent(key: Buffer): ICompare {
  return { key, target: 'Create', result: 'Equal', create_revision: 0 };
}

export function hangsOn(key: Buffer, lease: string): ICompare {
  return { key, target: 'Lease', result: 'Equal', lease };
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

/** Every entry is a waiter. */
export function onlyWaiters(range: KeyRange): ICompare {
  return { ...range, target: 'Value', result: 'Greater', value: Buffer.from(TAGS.afterHolds) };
}

/** Every hold is shared. */
export function noExclusiveHold(range: KeyRange): ICompare {
  return { ...range, target: 'Value', result: 'Greater', value: Buffer.from(TAGS.sharedHold) };
}

/** The key is that of an exclusive hold. */
export function exclusiveHold(key: Buffer): ICompare[] {
  return valuesBetween({ key }, TAGS.exclusiveHold, TAGS.sharedHold);
}

/** The range is not empty, and no entry conflicts with the mode. */
export function inAccordWith(range: KeyRange, mode: LockMode): ICompare[] {
  return mode.kind === 'permit'
    ? valuesBetween(range, permitTag(mode.limit), `${permitTag(mode.limit)}z`)
    : valuesBetween(range, TAGS.readersAndWriters, TAGS.afterReadersAndWriters);
}

function valuesBetween(range: KeyRange | { readonly key: Buffer }, from: string, to: string): ICompare[] {
  return [
    { ...range, target: 'Value', result: 'Greater', value: Buffer.from(from) },
    { ...range, target: 'Value', result: 'Less', value: Buffer.from(to) },
  ];
}

export function read(range: KeyRange | { readonly key: Buffer }): IRequestOp {
  return { request_range: range };
}

/** Reads the newest entries: recent holders and the end of the queue, or all entries if there are few. */
export function readEnd(range: KeyRange): IRequestOp {
  return { request_range: { ...range, limit: END, sort_order: 'Descend', sort_target: 'Create' } };
}

/** Reads the oldest entries: the head of the queue, and the holders that were queued there. */
export function readHead(range: KeyRange): IRequestOp {
  return { request_range: { ...range, limit: HEAD, sort_order: 'Ascend', sort_target: 'Create' } };
}

/** More entries than one transaction queues, so that the read includes an entry ahead of the last batch. */
const END = 128;
const HEAD = 128;

export function remove(key: Buffer): IRequestOp {
  return { request_delete_range: { key } };
}

export function when(compare: ICompare[], success: IRequestOp[], failure: IRequestOp[] = []): IRequestOp {
  return { request_txn: { compare, success, failure } };
}
