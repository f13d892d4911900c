import type { AcquireRequest, Grant } from '@locks/core/backend';
import type { LockRow } from './lock-row.ts';
import type { RowDecision } from './row-decision.ts';
import type { TimeLimit } from './time-limit.ts';

/** Tells which clients live. */
export interface Living {
  has(client: string): boolean;
}

/** The rows of some resources and the clients that live, as of one moment. */
export interface Snapshot {
  /** The time of the table's clock at which the rows were so. */
  readonly now: number;
  /** The time at which the snapshot was requested, on `performance.now()`. */
  readonly askedAt: number;
  /** The clients that live, as far as the table knows. */
  readonly alive: Living;
  /** The rows that exist, by name; `undefined`: the version of the row is among the known ones. */
  readonly rows: ReadonlyMap<string, LockRow | undefined>;
}

/** The write of one row over the version that it was decided on. */
export interface RowWrite {
  readonly name: string;
  /** The new state, and the version of the row that it was decided on. */
  readonly decision: RowDecision;
  /** The id of this write. */
  readonly version: number;
  /**
   * Whether the row is read again in any case before it is written again: a conflict need not tell how it is.
   * @defaultValue false
   */
  readonly isPatient?: boolean;
}

/** Of which clients that wait it is to be found out whether they live: of those that could be next, of all, or of those that seem dead. */
export type LookScope = 'next' | 'all' | 'dead';

/** What a push says of a write. */
export interface RowChange {
  /** The clients that it calls. */
  readonly wakes: readonly string[];
  /** The row that it made, where the push has it. */
  readonly found?: Snapshot | undefined;
}

/** The outcome of a write that took place. */
export interface RowWritten {
  readonly status: 'written';
  /** The time of the table's clock from which the leases in the row count. */
  readonly at: number;
  /** What the table needs to write over the row again. */
  readonly source: unknown;
}

/** The outcome of a write that did not take place, since the row had changed. */
export interface RowConflict {
  readonly status: 'conflict';
  /** The row as it was found then, where the table was told. */
  readonly found?: Snapshot | undefined;
  /**
   * What became of an earlier sending of this write, where a client repeats requests by itself and others wrote since then.
   * @defaultValue there was none
   */
  readonly earlier?: 'written' | 'unknown' | undefined;
}

/** The outcome of a take: the row that it made, and its only hold. */
export type RowTaken =
  | {
      readonly status: 'taken';
      /** The row, as far as the table knows it without reading it. */
      readonly row: LockRow;
      readonly token: number;
      /** The time of the table's clock at which the row was so, or earlier. */
      readonly at: number;
    }
  | RowConflict;

/** A version of a row is the id of the write that made it. */
export interface RowTake {
  /** The acquisition that takes its resource. */
  readonly request: AcquireRequest;
  /** The id of this write. */
  readonly version: number;
}

/** How often a table is asked, in milliseconds. */
export interface TablePace {
  /** The shortest pause between two polls of a process, in milliseconds. */
  readonly minPollMs: number;
  /** The longest one, in milliseconds. */
  readonly maxPollMs: number;
  /** How long a process that waits may be silent before its waiters are passed over. */
  readonly waiterTtlMs: number;
  /**
   * Whether who is next polls all through the present turn, not only towards its likely end: more requests, for shorter gaps where turns are
   * uneven.
   */
  readonly pollsPresentTurn: boolean;
}

/**
 * The rows of all resources in some store, as the kernel reads and writes them. A method rejects where it got no answer. The
 * table of a {@link RecordStore} is made by this package; a store that does more in one request, as a database, implements it.
 */
export interface LockTable {
  readonly name: string;
  /** How often this table is asked. */
  readonly pace: TablePace;
  /** How long a release is repeated without an answer, in milliseconds: writes of other processes may be in its way. */
  readonly releaseBudgetMs: number;
  /** How many names are read in one snapshot. */
  readonly namesAtOnce: number;
  /** How many rows are written with one call of `writeMany`. */
  readonly rowsAtOnce: number;
  /** How many rows of resources that nobody here uses are remembered for a while; 0 where `take` needs nothing of them. */
  readonly unusedKept: number;
  /** The longest state of a resource, in bytes as {@link encodeState} makes them. */
  readonly maxStateBytes: number;
  /** What bounds the state, for the message of a full queue. */
  readonly stateBound: string;
  /** Whether `write` may make a row that does not exist; else only `take` does. */
  readonly canCreate: boolean;
  /**
   * The present time of the table's clock, where that is a clock of this process. Without it a row is decided on as of the time
   * at which it was read, and `write` makes sure that no hold has ended since.
   */
  now?(): number;
  /**
   * The number that all tokens which are given out from now on are above, in microseconds since 1970.
   *
   * @defaultValue the present time of the table's clock
   */
  tokenFloor?(): number;
  /**
   * Reads rows. The state of a row whose version is among `known` need not be sent.
   *
   * @throws the error of the store, where it gave no answer
   */
  snapshot(names: readonly string[], known: readonly number[], limit: TimeLimit): Promise<Snapshot>;
  /**
   * Finds out which of the clients that wait for a name live. A snapshot tells this of the few ahead of this process.
   *
   * @defaultValue each snapshot tells it of all
   * @throws the error of the store, where it gave no answer
   */
  lookAt?(name: string, scope: LookScope, limit: TimeLimit): Promise<void>;
  /**
   * Takes a resource that is free in one request, nothing read before. Asks `isWanted` when it could be sent.
   *
   * @throws the error of the store, where it gave no answer
   */
  take(take: RowTake, limit: TimeLimit, isWanted: () => boolean): Promise<RowTaken>;
  /**
   * Compares and swaps one row.
   *
   * @throws the error of the store, where it gave no answer
   */
  write(write: RowWrite, limit: TimeLimit): Promise<RowWritten | RowConflict>;
  /**
   * Compares and swaps each row by itself; `undefined`: perhaps.
   *
   * @throws the error of the store, where it gave no answer
   */
  writeMany(writes: readonly RowWrite[], limit: TimeLimit): Promise<readonly (RowWritten | undefined)[]>;
  /**
   * Takes all resources or none (feature `many`).
   *
   * @throws the error of the store, where it gave no answer
   */
  takeMany?(
    takes: readonly RowTake[],
    limit: TimeLimit,
    isWanted: () => boolean,
  ): Promise<Snapshot | undefined>;
  /**
   * Tells that a client lives, for `lives` milliseconds from now.
   *
   * @throws the error of the store, where it gave no answer
   */
  beat(client: string, limit: TimeLimit, lives: number): Promise<void>;
  /**
   * For how long a client may say that it lives, in milliseconds, in the back of a crowd that stands still.
   * @defaultValue `pace.waiterTtlMs`
   */
  readonly longestWaiterTtlMs?: number;
  /**
   * Tells that a client has ended.
   *
   * @throws the error of the store, where it gave no answer
   */
  leave(client: string, limit: TimeLimit): Promise<void>;
  /**
   * Gives the rows of names with this prefix, and perhaps others (feature `list`).
   *
   * @throws the error of the store, where it gave no answer
   */
  list?(prefix: string, limit: TimeLimit): AsyncIterable<Snapshot>;
  /**
   * The cheapest round trip to the store.
   *
   * @throws the error of the store, where it gave no answer
   */
  ping(limit: TimeLimit): Promise<void>;
  /**
   * Deletes rows that are not in use; resolves with whether some are left for later.
   *
   * @throws the error of the store, where it gave no answer
   */
  sweep?(): Promise<boolean>;
  /** Calls `changed` soon after a row was written, with what is known of that write, until the returned function is called. */
  watch?(name: string, changed: (change?: RowChange) => void, client: string): () => void;
  /** Whether every push says whom the write calls. */
  readonly tellsWhom?: boolean;
  /** Whether `known` was written over `row`. */
  isOlder?(row: LockRow, known: LockRow): boolean;
  /**
   * Brings the ends of the holds of a known row nearer, which the table was told to be as before: the less time is left, the less may
   * clocks have run apart in it.
   *
   * @defaultValue ends are exact from the first reading on
   */
  refineEnds?(row: LockRow): void;
  /**
   * Makes what the table needs before the first read. Idempotent, also where several processes do so at once. No time limits it: it ends
   * soon after the signal aborts.
   *
   * @throws the error of the store
   */
  prepare?(limit: { readonly signal?: AbortSignal }): Promise<void>;
  /** Whether the same call may succeed if repeated. */
  isRetryable(error: unknown): boolean;
  /** Whether a connection broke, so that a request may be repeated at once on another. */
  isBroken(error: unknown): boolean;
  /** The error of a connection that is down now, where the client knows of it. */
  connectionError?(): unknown;
  /** Whether the application has closed the client that the table was given. */
  readonly isClientClosed?: (() => boolean) | undefined;
  /**
   * Ends what the table itself opened.
   *
   * @throws nothing that a user could mend
   */
  close(): Promise<void>;
}

/** The grant of a take, counted from `countedFrom`. */
export function takenGrant(request: AcquireRequest, token: number, countedFrom: number): Grant {
  return { request, fencingToken: BigInt(token), countedFrom };
}

/** The table's time at which the answer to a write came: the leases in the row may count from earlier, which is `at`. */
export function answeredAt(table: LockTable, at: number): number {
  return table.now?.() ?? at;
}

/**
 * Whether a newer state, of the table's time `at`, was learned while the snapshot was in flight. The snapshot is newer than any
 * state learned before its request, whatever the table's clock says, which may have been set back.
 */
export function isOvertaken({ now, askedAt }: Snapshot, at: number, learnedAt: number): boolean {
  return learnedAt > askedAt && at > now;
}
