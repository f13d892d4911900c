import type { BaseLease, MultiLease } from '@locks/core';
import type { RedlockCallSettings } from './settings.ts';
import type { ExecutionResult, ExecutionStats } from './execution-stats.ts';

/** The target of a lock's methods: the `Redlock` that acquired the lock. */
export interface LockOwner {
  /**
   * Releases the lock.
   * @throws ExecutionError, as `Redlock.release`
   */
  release(lock: Lock): Promise<ExecutionResult>;
  /**
   * Moves the end of the lock.
   * @throws ExecutionError, as `Redlock.extend`
   */
  extend(lock: Lock, duration: number, settings?: RedlockCallSettings): Promise<Lock>;
}

/** A lock on one or several resources that `Redlock.acquire` gave. */
export class Lock {
  /** The `Redlock` that acquired the lock. */
  readonly redlock: LockOwner;
  /** The names of the resources, as they were given. */
  readonly resources: string[];
  /** The leases of `@locks/core`, in the order of the resources: with one client each has a `fencingToken`. */
  readonly lease: MultiLease<BaseLease>;
  /** The votes of the clients when the lock was acquired. */
  readonly attempts: readonly Promise<ExecutionStats>[];

  /** Called by `Redlock.acquire`. */
  constructor(
    redlock: LockOwner,
    resources: string[],
    lease: MultiLease<BaseLease>,
    attempts: readonly Promise<ExecutionStats>[],
  ) {
    this.redlock = redlock;
    this.resources = resources;
    this.lease = lease;
    this.attempts = attempts;
  }

  /** Identifies this lock at the store: the acquisition id of its first lease. */
  get value(): string {
    return (this.lease.leases[0] as BaseLease).acquisitionId;
  }

  /**
   * The time until which the lock is certain to last, in milliseconds since 1970; 0 when the lock is over, also right after the
   * event loop stood still.
   */
  get expiration(): number {
    const { validForMs } = this.lease;
    return validForMs > 0 ? Date.now() + validForMs : 0;
  }

  /**
   * Releases the lock; a second call does nothing.
   * @throws ExecutionError at once if the lock is over, as `Redlock.release`
   */
  release(): Promise<ExecutionResult> {
    return this.redlock.release(this);
  }

  /**
   * Moves the end of the lock to `duration` milliseconds from now.
   * @returns this lock
   * @throws ExecutionError as `Redlock.extend`
   */
  extend(duration: number, settings?: RedlockCallSettings): Promise<Lock> {
    return this.redlock.extend(this, duration, settings);
  }
}
