import type { HistoryMode } from './history-event.ts';

/** A call of a history with its outcome. */
export interface HistoryOperation {
  /** The action that was called. */
  readonly operation: 'acquire' | 'release';
  /** The caller: a process, a thread, a task. */
  readonly process: string;
  /** The number of the call in its process. */
  readonly id: number;
  readonly resource: string;
  /** The id of the acquisition; `undefined` for an acquire that did not succeed, and had not named it. */
  readonly acquisitionId: string | undefined;
  /** The mode of the acquisition: exclusive, shared, or with permits. */
  readonly mode: HistoryMode;
  /** The fencing token of the hold; `undefined` where there is none. */
  readonly token: bigint | undefined;
  /** Milliseconds on the clock of the history. */
  readonly invokedAt: number;
  /** `undefined`: the history has no outcome. */
  readonly completedAt: number | undefined;
  /** `info` where the history has no outcome. */
  readonly outcome: 'ok' | 'fail' | 'info';
}

/** Everything that a history says of one acquisition id of a resource. */
export interface RecordedAcquisition {
  readonly acquisitionId: string;
  readonly resource: string;
  /** Acquires that succeeded, in the order of their outcomes. */
  readonly entries: HistoryOperation[];
  /** Acquires whose outcome nobody knows. */
  readonly unknownEntries: HistoryOperation[];
  /** Releases that did not fail, in the order of the history. */
  readonly releases: HistoryOperation[];
  /** The loss that was noted first. */
  loss: { readonly notedAt: number; readonly endedAt: number } | undefined;
}
