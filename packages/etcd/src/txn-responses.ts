import type { IKeyValue, IResponseOp, ITxnResponse } from 'etcd3';
import { decodeEntry, type EtcdEntry } from './etcd-entry.ts';
import { inQueueOrder } from './queue-turns.ts';

/** The state of one resource after a transaction, as one acquisition sees it. */
export interface ResourceView {
  readonly own: EtcdEntry | undefined;
  readonly others: readonly EtcdEntry[];
  readonly revision: number;
  readonly raftTerm: number;
  /** Whether only the end of the queue was read: there may be more entries ahead of `others`. */
  readonly partial: boolean;
}

export function viewOf(response: ITxnResponse, at: number, acquisitionId: string): ResourceView {
  return viewAmong(entriesAt(response, at), response, acquisitionId, isPartial(response, at));
}

export function isPartial({ responses }: ITxnResponse, at: number): boolean {
  return (responses[at] as IResponseOp).response_range.more === true;
}

/** Makes the view of one acquisition from entries that several acquisitions of a resource share. */
export function viewAmong(
  entries: readonly EtcdEntry[],
  response: ITxnResponse,
  acquisitionId: string,
  partial: boolean,
): ResourceView {
  return {
    partial,
    own: entries.find((entry) => entry.acquisitionId === acquisitionId),
    others: entries.filter((entry) => entry.acquisitionId !== acquisitionId),
    revision: revisionOf(response),
    raftTerm: termOf(response),
  };
}

/** Decodes the entries of one read: the holders first, then the waiters in queue order. */
export function entriesAt(response: ITxnResponse, at: number): EtcdEntry[] {
  return inQueueOrder(keysAt(response, at).map(decodeEntry));
}

/**
 * Decodes the entries of one read of the head of a queue, but for the last batch where the limit has cut the read: entries of one
 * transaction come in the order of their keys, so that those which are missing may be ahead of those which were read.
 */
export function headAt(response: ITxnResponse, at: number): EtcdEntry[] {
  const entries = entriesAt(response, at);
  if (!isPartial(response, at)) return entries;
  const last = Math.max(...entries.map(({ createRevision }) => createRevision));
  return entries.filter(({ createRevision }) => createRevision < last);
}

export function keysAt({ responses }: ITxnResponse, at: number): readonly IKeyValue[] {
  return (responses[at] as IResponseOp).response_range.kvs;
}

/** Completes a view of which only the own entry was read with the entries of the `nth` read inside a nested transaction, if it was run. */
export function withOthers<V extends ResourceView>(
  view: V,
  { responses }: ITxnResponse,
  at: number,
  nth: number,
): V {
  const entries = inQueueOrder((nestedReads(responses[at] as IResponseOp)[nth] ?? []).map(decodeEntry));
  return {
    ...view,
    others: entries.filter(({ key }) => view.own === undefined || !key.equals(view.own.key)),
  };
}

/** What the reads inside a transaction returned, in their order. */
function nestedReads({ response_range: range, response_txn: nested }: IResponseOp): (readonly IKeyValue[])[] {
  return range ? [range.kvs] : (nested?.responses ?? []).flatMap(nestedReads);
}

export function succeededAt({ responses }: ITxnResponse, at: number): boolean {
  return (responses[at] as IResponseOp).response_txn.succeeded;
}

export function revisionOf({ header }: Pick<ITxnResponse, 'header'>): number {
  return Number(header.revision);
}

export function termOf({ header }: ITxnResponse): number {
  return Number(header.raft_term);
}
