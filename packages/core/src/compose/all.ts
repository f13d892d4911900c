import { describe, invalidArgument, mustBe, quote } from '../errors.ts';
import type { LockBackend } from '../backend/types.ts';
import type { BaseLease, Lease } from '../lease.ts';
import { type Lock, type LockParts, ResourceLock } from '../lock.ts';
import type { AcquireOptions } from '../options.ts';
import { PermitLock } from './semaphore.ts';

/** One of several locks, in the order that all processes share. */
export interface Member {
  readonly lock: Lock;
  /** Its place among the locks as they were given. */
  readonly place: number;
  /** Absent for a lock of another copy of core, or of somebody's own. */
  readonly parts: LockParts | undefined;
}

export type AllOptions = Omit<AcquireOptions, 'within' | 'steal'>;

/**
 * Several locks that are acquired together: all of them or none, always in the order of their names. Locks of one name on
 * two stores of one kind are taken as they were given: give them in the same order everywhere, or two sets may wait for
 * each other.
 *
 * @example
 * ```ts
 * await locks.all([locks.lock('account:1'), locks.lock('account:2')]).run(() => transfer());
 * ```
 */
export interface MultiLock<L extends BaseLease = Lease> {
  /** As they were given. */
  readonly locks: readonly Lock<L>[];
  /**
   * Waits for all of them, within one `waitMs`: by default the shortest of theirs.
   * @throws LockError as `Lock.acquire`, of the first member that failed; then nothing is held
   */
  acquire(options?: AllOptions): Promise<MultiLease<L>>;
  /** Makes one attempt; `undefined`, and nothing held, when one of them is contended. */
  tryAcquire(options?: AllOptions): Promise<MultiLease<L> | undefined>;
  /**
   * Acquires, works, and releases all whatever happens.
   * @throws LockError as `Lock.run`
   */
  run<T>(work: (lease: MultiLease<L>) => T | Promise<T>, options?: AllOptions): Promise<T>;
}

/** The leases of several locks as one. */
export interface MultiLease<L extends BaseLease = Lease> extends AsyncDisposable {
  /** In the order in which the locks were given: for each one's fencing token. */
  readonly leases: readonly L[];
  /** Milliseconds that all of them are still valid. */
  readonly validForMs: number;
  /** Aborts with the `LOCK_LOST` error of the first that is lost. */
  readonly signal: AbortSignal;
  /** @throws LockError `LOCK_LOST`, `LOCK_NOT_HELD`, as `Lease.assertValid` */
  assertValid(minRemainingMs?: number): void;
  /** Renews all of them. @throws LockError as `Lease.renew` */
  renew(ttlMs?: number): Promise<void>;
  /** Releases all of them. @throws LockError `LOCK_LOST` if one was lost, `LOCK_BACKEND` */
  release(): Promise<void>;
}

/**
 * Checks the locks and sorts them: by name, then by backend. Whoever takes several in one order can wait for others, but
 * never in a circle (Havender's ordering, 1968; docs/spec.md §16.2).
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function membersOf(locks: readonly Lock[]): Member[] {
  if (!Array.isArray(locks) || locks.length === 0)
    throw mustBe('all()', 'given an array of at least one lock', locks);
  const members = locks.map((lock, place) => {
    if (!isLock(lock))
      throw invalidArgument(`all() takes locks, not ${describe(lock)}. For example: locks.lock(name).`);
    return { lock, place, parts: partsOf(lock) };
  });
  const byBackend = new Map<LockBackend, Set<string>>();
  for (const { lock, parts } of members) {
    if (parts === undefined) continue;
    const { backend } = parts.engine;
    const names = byBackend.get(backend) ?? new Set();
    byBackend.set(backend, names);
    if (names.has(lock.name)) {
      throw invalidArgument(
        `all() was given ${quote(lock.name)} twice: it would wait for itself. Name it once.`,
      );
    }
    names.add(lock.name);
  }
  // The name first: it is all that is known of a lock of another copy of core.
  return members.sort((a, b) => compare(a.lock.name, b.lock.name) || compare(backendOf(a), backendOf(b)));
}

function backendOf({ parts }: Member): string {
  return parts?.engine.backendName ?? '';
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

function partsOf(lock: Lock): LockParts | undefined {
  return lock instanceof ResourceLock || lock instanceof PermitLock ? lock.parts : undefined;
}

function isLock(value: unknown): value is Lock {
  const lock = value as Partial<Lock> | null;
  return typeof lock === 'object' && typeof lock?.acquire === 'function' && typeof lock.name === 'string';
}
