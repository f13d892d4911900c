/**
 * The version of a record, as the store gives it: an ETag, a revision, a number. Only the store compares versions. A version
 * never comes back, also not after the record was deleted and made again.
 */
export type RecordVersion = string | number | bigint;

/** A record as the store has it. */
export interface StoredRecord {
  /** What was written. */
  readonly value: Uint8Array;
  /** The version of this value. */
  readonly version: RecordVersion;
}

/** A write that takes place if the record has not changed since it was read. */
export interface RecordWrite {
  /** The record that is written: any text, which the store escapes where it must. */
  readonly key: string;
  /** The new value, which no earlier write of the record had; `undefined` deletes the record. */
  readonly value: Uint8Array | undefined;
  /** The version that the record must have; `undefined`: there must be none. */
  readonly ifVersion: RecordVersion | undefined;
  /**
   * Whether a store may delete this record later, once it has not been written for a day by the time that the store tells: nobody
   * holds, nobody waits, and the tokens of its name will rise without it, since new ones start from that time. Never so where the
   * store tells no time.
   */
  readonly isIdle: boolean;
  /**
   * The clients that this write calls, since their turn has come by it: a store that has {@link RecordStore.watch} tells them.
   * @defaultValue it calls nobody
   */
  readonly wakes?: readonly string[];
  /**
   * The time by which all holds in the value have ended, in milliseconds by the store's clock: a store that finds the value gone can tell when
   * nobody holds any more.
   * @defaultValue it has no holds that end by that clock
   */
  readonly heldUntilMs?: number;
}

/** What a push says of the write that it tells of. */
export interface RecordChange {
  /** The clients that the write calls. All others need not look. */
  readonly wakes: readonly string[];
  /** The record as it was written, where the push has it: it need not be read. */
  readonly record?: StoredRecord;
}

/** The outcome of a write. A store that does not know the outcome rejects instead. */
export type RecordWritten =
  | {
      readonly status: 'written';
      /** The version that the record has now. */
      readonly version: RecordVersion;
      /** The store's time in milliseconds, read after this request was sent and no later than its answer, where the answer tells it. */
      readonly now?: number;
    }
  | {
      /** The record has another version. Nothing was written by this request; an earlier sending of it may have been. */
      readonly status: 'conflict';
      /** The record that is there, where the store's answer has it; `absent` where it says that there is none. */
      readonly present?: StoredRecord | 'absent';
      /** The store's time in milliseconds, read after this request was sent and no later than its answer, where the answer tells it. */
      readonly now?: number;
    };

/** The records that were read, in the order of the keys; `undefined`: there is none. */
export interface RecordsRead {
  /** As many as there were keys. */
  readonly records: readonly (StoredRecord | undefined)[];
  /** The store's time in milliseconds, read after this request was sent and no later than its answer, where the answer tells it. */
  readonly now?: number;
}

/** The limits of one request. The backend stops waiting at the deadline by itself. */
export interface RequestLimit {
  /** How long the answer is of use, in milliseconds from now; more than 0. */
  readonly timeoutMs: number;
  /** Aborts when the answer is of no use any more. The signal is made when first read. */
  readonly signal: AbortSignal;
}

/** How often a store is asked. It may change while waiters come and go. */
export interface RecordPace {
  /**
   * The shortest pause between two polls of a process, in milliseconds.
   * @defaultValue 2
   */
  readonly minPollMs?: number;
  /**
   * The longest pause between two polls of a process that waits, in milliseconds.
   * @defaultValue 800
   */
  readonly maxPollMs?: number;
  /**
   * How long a process that waits may be silent before its waiters are passed over, in milliseconds. It writes its heartbeat a
   * little more often than twice in that time.
   * @defaultValue 3 000
   */
  readonly waiterTtlMs?: number;
}

/** What is known of the times that a store tells. */
export interface RecordClock {
  /** The step of the times that it tells, in milliseconds. */
  readonly stepMs: number;
  /** How far apart the clocks of its servers may be, in milliseconds. */
  readonly skewMs: number;
  /**
   * Whether holds end by these times, for a process too that has just started. Otherwise a hold ends for an observer that has seen it
   * unchanged for its ttl, and the times are used for the tokens of new records alone.
   * @defaultValue `true`
   */
  readonly endsHolds?: boolean;
}

/**
 * A store that compares and swaps single records. A read that follows an answered write sees that write, or a newer one
 * (`write` finds out where a read was stale, at the cost of one more try).
 *
 * A method rejects where it got no answer. A write that rejects may have taken place.
 */
export interface RecordStore {
  /** The name of the backend in messages, a short one: `dynamodb`. */
  readonly name: string;
  /** The longest value in bytes: the queue of a lock is one value. */
  readonly maxValueBytes: number;
  /** How often this store is asked. */
  readonly pace?: RecordPace;
  /** The clients that share the store: those of one host, or of a network. @defaultValue `'network'` */
  readonly reach?: 'host' | 'network';
  /** The shortest ttl, in milliseconds. @defaultValue 50 */
  readonly minTtlMs?: number;
  /**
   * Whether a read and a write have done all of their work when they return their promise, so that no time limit could end one.
   * @defaultValue false
   */
  readonly isSynchronous?: boolean;
  /** The clock of the store, which its answers or {@link RecordStore.askTime} tell. */
  readonly clock: RecordClock;
  /** Whether every push says whom the write calls: who is not called then polls seldom. @defaultValue false */
  readonly tellsWhom?: boolean;

  /**
   * Reads records; never from a cache or a replica that may be behind. At most 100 keys.
   *
   * @throws the error of the store, where it gave no answer
   */
  read(keys: readonly string[], limit: RequestLimit): Promise<RecordsRead>;

  /**
   * Compares and swaps one record, in one atomic step of the store.
   *
   * @throws the error of the store, where it gave no answer: the write may have taken place
   */
  write(write: RecordWrite, limit: RequestLimit): Promise<RecordWritten>;

  /**
   * For a store whose clock does not begin in 1970: a number of microseconds near to those since then, which rises with that clock. Tokens of
   * records that the store deleted as idle are at most half a day above it.
   *
   * @throws the error of the store
   */
  tokenFloor?(): number;

  /**
   * Asks the store for its time, in milliseconds since 1970 unless it has {@link RecordStore.tokenFloor}, where reads and writes that are asked often do not tell it: before the first
   * write, and then at most once a second. The answer is one to a request that was sent after this call. `undefined`: the store tells none.
   *
   * @throws the error of the store, where it gave no answer
   */
  askTime?(limit: RequestLimit): Promise<number | undefined>;

  /**
   * Calls `changed` soon after the record was written, until the returned function is called. A change may be told twice, too
   * early, or, rarely, not at all: whoever it calls reads the record, and all others do so now and then. Writes that do not call
   * `client` need not be told.
   *
   * @param changed - called with what the push says of the write; without it the record is read if the turn of this client may have come
   * @param client - the name of this client in {@link RecordWrite.wakes}
   */
  watch?(key: string, changed: (change?: RecordChange) => void, client: string): () => void;

  /**
   * Gives the records whose keys start with `prefix`, or more than those.
   *
   * @throws the error of the store, where it gave no answer
   */
  list?(prefix: string, limit: RequestLimit): AsyncIterable<StoredRecord>;

  /**
   * Makes what the store needs before the first read: a table, a bucket, an index. Idempotent, also where several processes do so at once.
   * No time limits it: it ends soon after the signal aborts.
   *
   * @throws the error of the store
   */
  prepare?(limit: { readonly signal?: AbortSignal }): Promise<void>;

  /** Whether the same request may succeed if repeated. */
  isRetryable(error: unknown): boolean;

  /** The error of a connection that is down now, where the client knows of it. */
  connectionError?(): unknown;

  /** Whether the application has closed the client that the store was given. */
  isClientClosed?(): boolean;

  /**
   * Ends what the store itself opened; never a client that it was given.
   *
   * @throws nothing that a user could mend
   */
  close(): Promise<void>;
}
