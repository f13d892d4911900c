import type { BackendCapabilities, LockMode } from './backend/types.ts';

/**
 * A lease of any backend: the right to a lock until its release, expiry or loss.
 *
 * `await using` releases it, and throws `LOCK_LOST` where it was lost before the block ended. Where the block throws too, JavaScript
 * throws a `SuppressedError`: its `error` is the loss, its `suppressed` the error of the block.
 */
export interface BaseLease extends AsyncDisposable {
  readonly name: string;
  /** Exclusive, shared, or with permits. */
  readonly mode: LockMode;
  /** The identity of this acquisition in the store. */
  readonly acquisitionId: string;
  /** The number of handles not released yet: 1, and 1 more for each re-entry. */
  readonly holdCount: number;
  /** How long the lease is valid without another renewal, in milliseconds; 0 when released or lost. */
  readonly validForMs: number;
  /**
   * Aborts with a `LOCK_LOST` error when the lease is lost, and in a `run` with the reason of its option `signal`, when that aborts. A
   * release does not abort it.
   */
  readonly signal: AbortSignal;
  /**
   * Throws unless the lease is valid for more than `minRemainingMs`. Call it right before an effect.
   * @param minRemainingMs - milliseconds; default 0
   * @throws LockError `LOCK_LOST`; `LOCK_EXPIRES_SOON` when too little time is left; `LOCK_NOT_HELD` after a release
   */
  assertValid(this: object, minRemainingMs?: number): void;
  /**
   * Moves the end of the lease to `ttlMs` from now, and uses this ttl for later renewals. While a shorter renewal has no answer, the
   * shorter time counts: the store may execute both in any order.
   * @param ttlMs - milliseconds; default: the present ttl
   * @throws LockError `LOCK_LOST`, `LOCK_NOT_HELD`, `LOCK_INVALID_ARGUMENT`; `LOCK_BACKEND` without a clear answer (the lease stays)
   */
  renew(this: object, ttlMs?: number): Promise<void>;
  /**
   * Releases this handle. The last handle releases the lease at the store. A second call does nothing.
   * @throws LockError `LOCK_LOST` if the lease was lost before; `LOCK_BACKEND` without an answer (the lease ends by its ttl)
   */
  release(this: object): Promise<void>;
}

/** A lease with a fencing token where the backend has tokens. */
export interface Lease extends BaseLease {
  /**
   * A number that rises with every change of holder. Send it with every write; the store of the data refuses a lower one. `undefined`
   * where the backend has no tokens.
   */
  readonly fencingToken?: bigint | undefined;
}

/** A lease with a fencing token. Use it as a parameter type in code that passes the token on. */
export interface FencedLease extends BaseLease {
  /**
   * A number that rises with every change of holder. Send it with every write; the store of the data refuses a lower one.
   */
  readonly fencingToken: bigint;
}

/** The lease of a writer, which can become a reader. */
export interface Downgradable {
  /**
   * Turns the write lease into a read lease with the same token. Waiting readers enter; no writer comes in between. After
   * `LOCK_BACKEND` the lease may be of either kind: call again, or release it.
   * @throws LockError `LOCK_LOST`, `LOCK_NOT_HELD`, `LOCK_BACKEND`; `LOCK_REENTRANT` while other handles are not released
   */
  downgrade(this: object): Promise<void>;
}

/** The lease that a backend with these capabilities gives. */
export type LeaseOf<C extends BackendCapabilities> = [C['fencing']] extends ['none']
  ? BaseLease
  : 'none' extends C['fencing']
    ? Lease
    : FencedLease;
