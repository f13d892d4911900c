import { describe, invalidArgument, mustBe, quote } from '../errors.ts';
import type { LockBackend } from '../backend/types.ts';
import type { BaseLease, Lease } from '../lease.ts';
import { type Lock, type LockInternals, ResourceLock } from '../lock.ts';
import type { AcquireOptions } from '../options.ts';

/** One lock of a multi-lock. */
export interface LockMember {
  readonly lock: Lock;
  /** The index of the lock in the array that the user gave. */
  readonly givenAt: number;
  /** Absent for a lock of another copy of core, or of the application's own. */
  readonly internals: LockInternals | undefined;
}

/** Options of an acquire of several locks: all but `within`, `steal` and `maxWaiters`. */
export type AllOptions = Omit<AcquireOptions, 'within' | 'steal' | 'maxWaiters'>;

// setup: import { createLocks } from '@locks/core'; import { memoryBackend } from '@locks/memory'; const locks = createLocks(memoryBackend());
// setup: declare function transfer(): Promise<void>;
/**
 * Several locks as one: all or none, taken in the order of their names. Give locks of one name on two stores of one kind in the
 * same order everywhere: otherwise two multi-locks may deadlock.
 *
 * @example
 * ```ts
 * await locks.all([locks.lock('account:1'), locks.lock('account:2')]).run(() => transfer());
 * ```
 */
export interface MultiLock<L extends BaseLease = Lease> {
  /** The locks in the given order. */
  readonly locks: readonly Lock<L>[];
  /**
   * Waits for all locks within one `waitMs`, by default the shortest of the members.
   * @throws LockError as `Lock.acquire`, for the first member that failed; then nothing is held
   */
  acquire(this: object, options?: AllOptions): Promise<MultiLease<L>>;
  /**
   * Makes one attempt, and gives `undefined` when one of the locks is busy; then nothing is held.
   * @throws LockError as `Lock.tryAcquire`, for the first member that failed; then nothing is held
   */
  tryAcquire(this: object, options?: Omit<AllOptions, 'waitMs'>): Promise<MultiLease<L> | undefined>;
  /**
   * Acquires all, runs `work`, and releases all in every case.
   * @throws LockError as `Lock.run`
   */
  run<T>(this: object, work: (lease: MultiLease<L>) => T | Promise<T>, options?: AllOptions): Promise<T>;
}

/** The leases of several locks as one. */
export interface MultiLease<L extends BaseLease = Lease> extends AsyncDisposable {
  /** The leases in the order of the locks. Each has its own fencing token. */
  readonly leases: readonly L[];
  /** How long all leases are valid, in milliseconds. */
  readonly validForMs: number;
  /** Aborts with the `LOCK_LOST` error of the first lost lease; in a `run` also with the reason of its option `signal`. */
  readonly signal: AbortSignal;
  /**
   * Throws unless all leases are valid for more than `minRemainingMs` milliseconds.
   * @throws LockError `LOCK_LOST`, `LOCK_EXPIRES_SOON`, `LOCK_NOT_HELD`, as `Lease.assertValid`
   */
  assertValid(this: object, minRemainingMs?: number): void;
  /** Renews all leases. @throws LockError as `Lease.renew` */
  renew(this: object, ttlMs?: number): Promise<void>;
  /** Releases all leases. @throws LockError `LOCK_LOST` if one was lost, `LOCK_BACKEND` */
  release(this: object): Promise<void>;
}

/**
 * Checks the locks and sorts them: by name, then by backend. Where all processes take their locks in one order, no circle of
 * waits can form (Havender's ordering, 1968; docs/spec.md §16.2).
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function membersOf(locks: readonly Lock[]): LockMember[] {
  if (!Array.isArray(locks) || locks.length === 0)
    throw mustBe('all(): the locks', 'an array of at least one lock', locks);
  const members = locks.map((lock, givenAt) => {
    if (!isLock(lock))
      throw invalidArgument(`all() takes locks, not ${describe(lock)}. For example: locks.lock(name).`);
    return { lock, givenAt, internals: internalsOf(lock) };
  });
  const byBackend = new Map<LockBackend, Set<string>>();
  for (const { lock, internals } of members) {
    if (internals === undefined) continue;
    const { backend } = internals.core;
    const names = byBackend.get(backend) ?? new Set();
    byBackend.set(backend, names);
    if (names.has(lock.name)) {
      throw invalidArgument(
        `all() was given ${quote(lock.name)} twice: it would wait for itself. Name it once.`,
      );
    }
    names.add(lock.name);
  }
  // The name comes first: nothing else is known of a lock of another copy of core.
  return members.sort((a, b) => compare(a.lock.name, b.lock.name) || compare(backendOf(a), backendOf(b)));
}

function backendOf({ internals }: LockMember): string {
  return internals?.core.backendName ?? '';
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

export function internalsOf(lock: Lock): LockInternals | undefined {
  return lock instanceof ResourceLock ? lock.internals : undefined;
}

function isLock(value: unknown): value is Lock {
  const lock = value as Partial<Lock> | null;
  return typeof lock === 'object' && typeof lock?.acquire === 'function' && typeof lock.name === 'string';
}
