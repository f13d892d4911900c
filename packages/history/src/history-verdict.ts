import type { HistoryMode } from './history-event.ts';
import type { HistoryOperation } from './history-operation.ts';

/** The kind of a broken promise. */
export type HistoryViolationKind =
  /** Two acquisitions that exclude each other hold at once. */
  | 'exclusion'
  /** More permits are held than the limit allows. */
  | 'capacity'
  /** Permits of one resource are held under different limits. */
  | 'limit'
  /** A token is not higher than that of an earlier holder. */
  | 'token-order'
  /** The entries of one acquisition have different tokens. */
  | 'token-change'
  /** A grant without a token where `fenced` was asked for. */
  | 'token-missing'
  /** An acquisition enters again where `reentrant` was not asked for. */
  | 'reentry'
  /** A shared hold or one of permits is entered in another mode. */
  | 'mode-change'
  /** An acquisition id holds again after its hold had ended. */
  | 'reuse'
  /** A process enters or releases what another one acquired. */
  | 'owner'
  /** More releases succeeded than there were acquires, or one after the loss. */
  | 'release';

/** A promise that a history broke. */
export interface HistoryViolation {
  /** The kind of the broken promise. */
  readonly kind: HistoryViolationKind;
  readonly resource: string;
  /** The description of the violation, with processes, acquisitions, tokens and times; times count from the first event. */
  readonly sentence: string;
  /** The calls concerned, the earliest first; at most 12. */
  readonly operations: readonly HistoryOperation[];
}

/** The verdict on a history. */
export interface HistoryVerdict {
  /** The number of calls in the history. */
  readonly operations: number;
  /** The number of acquisitions that held. */
  readonly holds: number;
  /** The broken promises. Empty: the lock kept them all. */
  readonly violations: readonly HistoryViolation[];
  /** The longest time in milliseconds for which nobody held a resource while an acquire waited that was granted later. */
  readonly longestIdleMs: number;
}

/** The time in which an acquisition certainly held: from the outcome of its acquire until its holder gave it up. */
export interface CertainHold {
  readonly entry: HistoryOperation;
  readonly mode: HistoryMode;
  readonly token: bigint | undefined;
  readonly from: number;
  /** The end of the hold; infinite where the history ends before the hold. */
  readonly until: number;
  /** The release that ended the hold. */
  readonly release: HistoryOperation | undefined;
}

/** Writes sentences; times count from the first event of the history. */
export class Narrator {
  readonly #startedAt: number;

  constructor(startedAt: number) {
    this.#startedAt = startedAt;
  }

  at(time: number): string {
    return `${(time - this.#startedAt).toFixed(3)} ms`;
  }

  /** Describes an acquisition: `worker 1's acquisition "x1" (exclusive, token 7)`. */
  name({ process, acquisitionId, mode, token }: HistoryOperation): string {
    const traits = [describeMode(mode), ...(token === undefined ? [] : [`token ${token}`])];
    return `${process}'s acquisition ${JSON.stringify(acquisitionId)} (${traits.join(', ')})`;
  }

  span({ from, until }: CertainHold): string {
    const end = until === Number.POSITIVE_INFINITY ? 'the end' : this.at(until);
    return `from ${this.at(from)} to ${end}`;
  }
}

export function describeMode(mode: HistoryMode): string {
  return mode.kind === 'permit' ? `${mode.weight} of ${mode.limit} permits` : mode.kind;
}
