import type { LeaderInfo } from '@locks/leader';

/** How a process reaches the store that all share, as plain data for child processes. */
export interface CandidateSetup {
  /** The module of a conformance harness, which makes the backend. */
  readonly harness: string;
  /** The environment that the harness reads. */
  readonly env: Readonly<Record<string, string>>;
  readonly label: string;
  readonly ttlMs: number;
}

/** One leadership of a process. Times are of the machine's monotonic clock, in milliseconds. */
export interface LedTerm {
  readonly epoch: number;
  readonly token: bigint | undefined;
  readonly beganAt: number;
  /** When its signal aborted or its work settled; `undefined` while it lasts. */
  readonly endedAt: number | undefined;
  /** Why its signal aborted: the `reason` of a loss, or the name of the error. */
  readonly reason: string | undefined;
}

/** The commands of a process that may lead. */
export interface CandidateCommands {
  /** Takes part in the election; resolves when the store has this process as the leader or in the queue. */
  campaign(name: string): Promise<void>;
  /** Every leadership so far. A leadership that is over by the clock has ended. */
  terms(): Promise<readonly LedTerm[]>;
  /** The leadership ends, and the campaign goes on. */
  resign(): Promise<void>;
  /** Ends the campaign. */
  stop(): Promise<void>;
  /** Blocks the event loop, and says afterwards what the leadership of before shows in the same turn. */
  block(ms: number): Promise<{ readonly aborted: boolean; readonly validForMs: number }>;
  leader(name: string): Promise<LeaderInfo | undefined>;
  /** The labels that `watch` gives from now on, until it gave `count` of them. */
  watch(name: string, count: number): Promise<readonly (string | undefined)[]>;
}
