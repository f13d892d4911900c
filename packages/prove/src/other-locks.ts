import type { RecordableLease } from '@locks/history';

/** A hold of another library. */
export interface OtherLease extends RecordableLease {
  /**
   * Gives the lock back.
   *
   * @throws an error with the `code` `LOCK_LOST` where the hold had ended before; any other, where the outcome is unknown
   */
  release(): Promise<unknown>;
}

/** The locks of another library, as {@link prove} examines them. */
export interface OtherLocks {
  /** The name of the library, for the report. */
  readonly name: string;
  /** Whether its holds have a `fencingToken`. @defaultValue false */
  readonly hasTokens?: boolean;
  /**
   * Acquires a lock that ends `ttlMs` after its holder was last heard of.
   *
   * @param name - the name of the lock
   * @param limits - how long the hold lasts without a renewal, and how long the call may wait, in milliseconds
   * @returns `undefined` where the lock was not free in time
   * @throws any error, where the lock was not free in time or the outcome is unknown
   */
  acquire(
    name: string,
    limits: { readonly ttlMs: number; readonly waitMs: number },
  ): Promise<OtherLease | undefined>;
  /**
   * Closes the client.
   *
   * @throws any error, which the proof ignores
   */
  close?(): Promise<unknown>;
}
