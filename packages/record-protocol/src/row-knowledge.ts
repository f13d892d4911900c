import type { LockRow } from './lock-row.ts';
import type { RowDecision } from './row-decision.ts';

/** What this process knows of a row on which it has something to decide. */
export type RowKnowledge =
  /** Nothing: a step that may take the resource in one request finds out how the row is. */
  | 'unknown'
  /** The row as this process read or wrote it last. Others may have written since: only a write proves that nobody has. */
  | 'remembered'
  /** Others have written, or a write of this process got no answer: the row is read before anything is decided. */
  | 'stale'
  /** The row as it was just read, or as a refused write has found it. */
  | 'fresh';

/** Whether what was decided may be answered, or written. Another decision is to be made on the row as it is read then. */
export function isReliable(knowledge: RowKnowledge, { needsFresh, changed, isWhole }: RowDecision): boolean {
  switch (knowledge) {
    case 'fresh':
      return true;
    case 'remembered':
      // Nothing but its write proves that such a decision was right.
      return changed && isWhole && !needsFresh;
    case 'unknown':
    case 'stale':
      return false;
    default:
      return knowledge satisfies never;
  }
}

/** A write that was sent, and may have taken place though no answer came. */
export interface SentRowWrite {
  /** The id of the write: the row has it where the write took place, and nobody has written since. */
  readonly version: number;
  /** Finishes what was decided with the write, which took place. */
  finish(): void;
}

/** Whether a write whose answer did not come took place, by a row that was read since. */
export function tookPlace(sent: SentRowWrite | undefined, read: LockRow | undefined): sent is SentRowWrite {
  return sent !== undefined && sent.version === read?.version;
}
