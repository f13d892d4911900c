import type { BackendCapabilities, LockMode } from './backend/types.ts';

/** A lease of any backend, whatever it promises. */
export interface BaseLease extends AsyncDisposable {
  /** The name of the resource. */
  readonly name: string;
  /** Alone, shared, or with permits. */
  readonly mode: LockMode;
  /** The only identity of this acquisition that the store sees. */
  readonly acquisitionId: string;
  /** How many handles of this lease are not released yet: 1, and one more for each re-entry. */
  readonly holdCount: number;
  /** Milliseconds that the lease is still valid without another renewal; 0 when it was released or lost. */
  readonly validForMs: number;
  /** Aborts with a `LOCK_LOST` error the moment the lease is lost; never because of a release. */
  readonly signal: AbortSignal;
  /**
   * Throws unless the lease is valid for more than `minRemainingMs`.
   * @param minRemainingMs - milliseconds; default 0
   * @throws LockError `LOCK_LOST`, without a `reason` if it is still valid but for less; `LOCK_NOT_HELD` after a release
   */
  assertValid(minRemainingMs?: number): void;
  /**
   * Moves the end of the lease to `ttlMs` from now; later renewals use this ttl too. While a shorter renewal is unanswered,
   * the lease counts for no longer than that one, and is renewed again in a third of it: the store may carry out both in any
   * order.
   * @param ttlMs - milliseconds; default: the ttl so far
   * @throws LockError `LOCK_LOST`, `LOCK_NOT_HELD`, `LOCK_BACKEND` when the store gave no clear answer (the lease stays),
   * `LOCK_INVALID_ARGUMENT`
   */
  renew(ttlMs?: number): Promise<void>;
  /**
   * Releases this handle; the last handle of a lease releases the lease at the store. A second call is a no-op.
   * @throws LockError `LOCK_LOST` if it was lost before, `LOCK_BACKEND` if the store gave no answer (it ends by its ttl)
   */
  release(): Promise<void>;
}

/**
 * The right to a resource, until it is released, expired or lost. `fencingToken` rises with every change of holder; where
 * the backend has none, reading it does not compile.
 */
export interface Lease extends BaseLease {
  /**
   * Rises with every change of holder of the resource, and stays the same while it is held. Send it with every write to
   * the data that the lock guards, and let the data's store refuse a lower one. `undefined` where the backend has none.
   */
  readonly fencingToken?: bigint | undefined;
}

/** A lease of a backend with fencing tokens: the parameter type of functions that pass the token on. */
export interface FencedLease extends BaseLease {
  /**
   * Rises with every change of holder of the resource, and stays the same while it is held. Send it with every write to
   * the data that the lock guards, and let the data's store refuse a lower one.
   */
  readonly fencingToken: bigint;
}

/** The additional method of a writer's lease. */
export interface Downgradable {
  /**
   * Turns the write lease into a read lease with the same token. No other writer can come between, and waiting readers
   * enter. After `LOCK_BACKEND` the lease may be of either kind: call it again, or release the lease.
   * @throws LockError `LOCK_LOST`, `LOCK_NOT_HELD`, `LOCK_BACKEND`, `LOCK_REENTRANT` while re-entered handles are not
   * released
   */
  downgrade(): Promise<void>;
}

/** The lease that a backend with these capabilities gives. */
export type LeaseOf<C extends BackendCapabilities> = [C['fencing']] extends ['none']
  ? BaseLease
  : 'none' extends C['fencing']
    ? Lease
    : FencedLease;
