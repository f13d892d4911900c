import type { IKeyValue, IResponseOp, ITxnResponse } from 'etcd3';
import { decodeEntry, type Entry } from './entry.ts';
import { inOrder } from './turn.ts';

/** The state of one resource as a transaction left it. */
export interface Answer {
  readonly own: Entry | undefined;
  readonly others: readonly Entry[];
  readonly revision: number;
  readonly raftTerm: number;
}

export function answerOf(response: ITxnResponse, at: number, acquisitionId: string): Answer {
  return answerAmong(entriesAt(response, at), response, acquisitionId);
}

/** The same, for one of many who ask about one resource. */
export function answerAmong(
  entries: readonly Entry[],
  response: ITxnResponse,
  acquisitionId: string,
): Answer {
  return {
    own: entries.find((entry) => entry.acquisitionId === acquisitionId),
    others: entries.filter((entry) => entry.acquisitionId !== acquisitionId),
    revision: revisionOf(response),
    raftTerm: termOf(response),
  };
}

/** The holders, and then the waiters in their order. */
export function entriesAt(response: ITxnResponse, at: number): Entry[] {
  return inOrder(keysAt(response, at).map(decodeEntry));
}

export function keysAt({ responses }: ITxnResponse, at: number): readonly IKeyValue[] {
  return (responses[at] as IResponseOp).response_range.kvs;
}

export function succeededAt({ responses }: ITxnResponse, at: number): boolean {
  return (responses[at] as IResponseOp).response_txn.succeeded;
}

export function revisionOf({ header }: ITxnResponse): number {
  return Number(header.revision);
}

export function termOf({ header }: ITxnResponse): number {
  return Number(header.raft_term);
}
