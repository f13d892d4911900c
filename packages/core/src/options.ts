import { abortSignal } from './backend/abort-signal.ts';
import { defaultLabel } from './backend/default-label.ts';
import {
  matching,
  milliseconds,
  oneOf,
  optional,
  type OptionsRead,
  type OptionTable,
  readOptions,
  wholeNumber,
} from './backend/read-options.ts';
import type { BackendCapabilities } from './backend/types.ts';
import { mustBe } from './errors.ts';
import type { BaseLease } from './lease.ts';
import { type RenewalThread, START } from './lifetime/renewal-thread.ts';
import { checkLabel } from './names.ts';

/** Options of a manager or a lock. Times are milliseconds. */
export interface LockOptions {
  /**
   * How long the store keeps the lease of a crashed holder, in milliseconds. A whole number from the backend's floor to one year,
   * rounded up to the backend's step.
   * @defaultValue 30 000
   */
  readonly ttlMs?: number | undefined;
  /**
   * How long a call may take to get the lock, in milliseconds, calls to the store included. Below `ttlMs` a wait does not outlive a
   * crashed holder. `Infinity` waits until `signal` aborts. 0 makes one attempt, as `tryAcquire` does without this option.
   * @defaultValue 10 000
   */
  readonly waitMs?: number | undefined;
  /**
   * How the lease is renewed: `auto`, every third of its ttl until the release; `manual`, only by `lease.renew()`.
   * @defaultValue 'auto'
   */
  readonly renewal?: 'auto' | 'manual' | undefined;
  /**
   * How long automatic renewal goes on, in milliseconds after the grant: the lease is lost within a ttl after that. On a backend with
   * sessions it is lost, and freed for others, at that time. Without it, a lease held past 2 × ttl is reported once on `locks:slow-hold`.
   * @defaultValue none
   */
  readonly maxHoldMs?: number | undefined;
  /**
   * A name of the holder for operators: at most 256 UTF-8 bytes, no control characters.
   * @defaultValue `host:pid`
   */
  readonly label?: string | undefined;
  /**
   * Whether a `run` inside a `run` of the same lock re-enters it, found through `AsyncLocalStorage`.
   * @defaultValue false
   */
  readonly reentrant?: boolean | undefined;
  /**
   * How many may wait for the lock, over all processes: an acquire that finds so many waiters rejects with `LOCK_QUEUE_FULL` at once. 0
   * to 10 000. Needs the backend's feature `max-waiters`.
   * @defaultValue none
   */
  readonly maxWaiters?: number | undefined;
}

/** Options of a manager: the defaults of its locks, and what concerns them all. Times are milliseconds. */
export interface ManagerOptions extends LockOptions {
  /**
   * How long the store may take to answer a call that waits for no lock, in milliseconds, from 1 to 3 600 000: `tryAcquire` and an acquire
   * with `waitMs: 0`, at most for the ttl; `ping`, `inspect`, `isLocked`, `forceRelease`, `resize`, and `list` for each of its pages.
   * @defaultValue 10 000
   */
  readonly answerMs?: number | undefined;
  /**
   * How long a wait inside a `run` lasts before circles of waits over several processes are looked for, in milliseconds, from 10; and how
   * often they then are. `Infinity`: never.
   * @defaultValue 1 000
   */
  readonly deadlockAfterMs?: number | undefined;
  /**
   * What `renewalThread()` of `@locks/core/renewal-thread` gives: it renews the leases while the event loop is blocked. One for each
   * manager; `close()` ends it.
   * @defaultValue none: the event loop renews the leases
   */
  readonly renewalThread?: RenewalThread | undefined;
}

/** Options of one acquire. */
export interface AcquireOptions extends Omit<LockOptions, 'reentrant'> {
  /**
   * Ends the wait: the call rejects with `signal.reason` and leaves nothing in the store. In a `run` it then aborts the `signal` of the
   * lease that the work has, with the same reason.
   */
  readonly signal?: AbortSignal | undefined;
  /** The lease to re-enter, in turns with its other children. */
  readonly within?: BaseLease | undefined;
  /**
   * Whether to take the lock from its holders, ahead of the queue; they see `LOCK_LOST`. Needs the backend's feature `steal`. Rejects
   * with `LOCK_CONFLICT` when waiters want another limit or kind.
   * @defaultValue false
   */
  readonly steal?: boolean | undefined;
}

/** Options of a single attempt, which waits for nobody. What bounds the store's answer is `answerMs` of the manager. */
export type TryAcquireOptions = Omit<AcquireOptions, 'waitMs'>;

/** How long a single attempt waits, for its answer alone (docs/spec.md §7.4). After the ttl a grant would be of no use. */
export function attemptLimitMs(answerMs: number, ttlMs: number): number {
  return Math.min(answerMs, ttlMs);
}

/** Options with every default filled in and every value checked. */
export interface ResolvedOptions {
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly autoRenew: boolean;
  readonly maxHoldMs: number;
  readonly label: string;
  readonly reentrant: boolean;
  readonly signal: AbortSignal | undefined;
  readonly within: BaseLease | undefined;
  readonly steal: boolean;
  readonly maxWaiters: number | undefined;
  /** The acquisition whose lease is adopted. */
  readonly adopts?: string;
}

/** The shortest ttl on any backend: the drift margin would leave no lease of a shorter one. */
const MIN_TTL_MS = 10;
/** The longest ttl, one year: a longer one is a mistake, and every store calculates with far longer ones exactly. */
export const MAX_TTL_MS = 31_536_000_000;

/** Options of a lock. {@link checkTtl} checks the ttl, whose floor is the backend's. */
export const LOCK_TABLE = {
  ttlMs: (value) => value,
  waitMs: optional(milliseconds(0, Number.POSITIVE_INFINITY)),
  renewal: optional(oneOf('auto', 'manual')),
  maxHoldMs: optional(milliseconds(1, Number.POSITIVE_INFINITY)),
  label: optional(checkLabel),
  reentrant: optional(oneOf(true, false)),
  maxWaiters: optional(wholeNumber(0, 10_000)),
} satisfies OptionTable<LockOptions>;

/** What `answerMs` is where a manager was given none, in milliseconds. */
export const ANSWER_MS = 10_000;
/** What `deadlockAfterMs` is where a manager was given none, in milliseconds. */
export const DEADLOCK_AFTER_MS = 1_000;
/** The part of a manager's options that `ping` has, too. */
export const ANSWER_TABLE = { answerMs: optional(milliseconds(1, 3_600_000)) };
const isRenewalThread = (value: unknown): value is RenewalThread => START in Object(value);
/** Options of a manager. */
export const MANAGER_TABLE = {
  ...LOCK_TABLE,
  ...ANSWER_TABLE,
  deadlockAfterMs: optional(milliseconds(10, Number.POSITIVE_INFINITY)),
  renewalThread: optional(matching('what renewalThread() gives', isRenewalThread)),
} satisfies OptionTable<ManagerOptions>;

const { reentrant: _, maxWaiters, ...SHARED_TABLE } = LOCK_TABLE;
/** Options of a multi-lock. */
export const ALL_TABLE = { ...SHARED_TABLE, signal: optional(abortSignal) };
/** Options of one acquire. `within` is checked where the lease is re-entered. */
export const ACQUIRE_TABLE = {
  ...ALL_TABLE,
  maxWaiters,
  within: (value) => value as BaseLease | undefined,
  steal: optional(oneOf(true, false), false),
} satisfies OptionTable<AcquireOptions>;

/** Options of a single attempt on a multi-lock. */
export const TRY_ALL_TABLE = withoutWait(ALL_TABLE);
/** Options of a single attempt. */
export const TRY_TABLE = withoutWait(ACQUIRE_TABLE);

function withoutWait<T extends { readonly waitMs: unknown }>(table: T): Omit<T, 'waitMs'> {
  const { waitMs: _wait, ...others } = table;
  return others;
}

const OF_ACQUIRE = 'acquire() and run()';
/** The functions that have an option which others lack, for messages. */
export const ELSEWHERE = {
  waitMs: 'acquire({ waitMs }); createLocks(backend, { answerMs }) bounds the answer of the store',
  answerMs: 'createLocks()',
  signal: OF_ACQUIRE,
  within: OF_ACQUIRE,
  steal: OF_ACQUIRE,
  weight: 'acquire() and run() of a semaphore',
  maxWaiters: 'lock(), acquire() and run()',
  reentrant: 'lock() and createLocks()',
};

export function builtInDefaults(ttl: BackendCapabilities['ttl']): ResolvedOptions {
  return {
    ttlMs: roundUp(Math.max(30_000, ttl.minMs), ttl.stepMs),
    waitMs: 10_000,
    autoRenew: true,
    maxHoldMs: Number.POSITIVE_INFINITY,
    label: defaultLabel(),
    reentrant: false,
    signal: undefined,
    within: undefined,
    steal: false,
    maxWaiters: undefined,
  };
}

/**
 * Reads options over those of `base`. An option that was not given keeps its value of `base`, unless it belongs to one acquire.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` naming the option, its value and what is allowed.
 */
export function resolveOptions(
  table:
    | typeof MANAGER_TABLE
    | typeof LOCK_TABLE
    | typeof ALL_TABLE
    | typeof ACQUIRE_TABLE
    | typeof TRY_TABLE,
  base: ResolvedOptions,
  options: ManagerOptions | AcquireOptions | undefined,
  ttl: BackendCapabilities['ttl'],
  caller = 'acquire()',
): ResolvedOptions {
  if (options === undefined) return base;
  const read: Read = readOptions(caller, options, table, ELSEWHERE);
  const ttlMs = read.ttlMs === undefined ? base.ttlMs : checkTtl(read.ttlMs, ttl, `${caller}: ttlMs`);
  return {
    ttlMs,
    waitMs: read.waitMs ?? base.waitMs,
    autoRenew: read.renewal === undefined ? base.autoRenew : read.renewal === 'auto',
    maxHoldMs: read.maxHoldMs ?? base.maxHoldMs,
    label: read.label ?? base.label,
    reentrant: read.reentrant ?? base.reentrant,
    signal: read.signal,
    within: read.within,
    steal: read.steal ?? false,
    maxWaiters: read.maxWaiters ?? base.maxWaiters,
  };
}

type Read = Partial<OptionsRead<typeof LOCK_TABLE & typeof ACQUIRE_TABLE>>;

/** Checks a ttl and rounds it up to the backend's step. */
export function checkTtl(value: unknown, ttl: BackendCapabilities['ttl'], what = 'ttlMs'): number {
  const floor = Math.max(ttl.minMs, MIN_TTL_MS);
  if (typeof value !== 'number' || !Number.isInteger(value) || value < floor || value > MAX_TTL_MS) {
    const allowed = `a whole number of milliseconds from ${floor} (this backend's floor) to ${MAX_TTL_MS} (one year)`;
    throw mustBe(what, allowed, value);
  }
  return roundUp(value, ttl.stepMs);
}

function roundUp(value: number, step: number): number {
  return step <= 1 ? value : Math.ceil(value / step) * step;
}
