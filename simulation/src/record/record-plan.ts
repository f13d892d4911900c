/** What a store that compares and swaps single records is like. A seed draws one: a store in use is somewhere among them. */
export interface RecordPlan {
  /** `undefined`: no answer tells the time. */
  readonly clock: RecordClockPlan | undefined;
  /** Whether a client can watch a record. */
  readonly watches: boolean;
  /** Whether a push says whom a write calls, and then what it has of the record. */
  readonly tellsWhom: 'nothing' | 'whom' | 'record';
  /** The part of the requests about a record after which its watchers are told of a change, though there was none. */
  readonly vainPushes: number;
  /** Whether it lists its records. */
  readonly lists: boolean;
  /** Whether the answer to a write that found another version has the record that is there. */
  readonly conflictsTell: boolean;
  /** `'value'`: the version is made of the value, so a write of the same value keeps it. */
  readonly versions: 'number' | 'string' | 'bigint' | 'value';
  /** The part of the reads that give a record as it was up to `staleMs` before. */
  readonly stale: number;
  readonly staleMs: number;
  /** The part of the writes that the server answers with an error, although it may have carried them out. */
  readonly failed: number;
  /**
   * A record that is not in use is deleted when it was not written for so long, in milliseconds: for longer than the clocks of processes
   * are apart.
   */
  readonly deletesIdleAfterMs: number;
  /** How often the client sends a request again by itself. */
  readonly retries: number;
  /** Whether the client gives a request up when the answer is of no use any more. */
  readonly endsAtAbort: boolean;
  readonly minPollMs: number;
  readonly waiterTtlMs: number;
}

export interface RecordClockPlan {
  readonly stepMs: number;
  /** How far apart the clocks of the servers are at most. */
  readonly skewMs: number;
  /** Whether the answers to writes tell the time, as those to reads do. */
  readonly isInWrites: boolean;
}

/** Whether no answer tells the time but one to a request for it: so where it is exact, and not told with writes. */
export function isAskedFor({ stepMs, isInWrites }: RecordClockPlan): boolean {
  return stepMs === 1 && !isInWrites;
}
