import { hostname } from 'node:os';
import type { BackendCapabilities } from './backend/types.ts';
import { invalidArgument, mustBe, quote } from './errors.ts';
import type { BaseLease } from './lease.ts';
import { checkLabel } from './names.ts';
import { driftMargin } from './tenure/hold.ts';

/** Options of a manager or a lock. All times are milliseconds. */
export interface LockOptions {
  /**
   * How long the store keeps an abandoned lease. A whole number from the backend's floor to one year; rounded up to the
   * backend's step.
   * @defaultValue 30 000
   */
  readonly ttlMs?: number | undefined;
  /**
   * How long to wait for a contended lock; it covers the calls to the store too. 0 makes exactly one attempt; `Infinity`
   * waits until `signal` aborts.
   * @defaultValue 10 000
   */
  readonly waitMs?: number | undefined;
  /**
   * `auto` renews the lease every third of its ttl until it is released; `manual` leaves it to `lease.renew()`.
   * @defaultValue 'auto'
   */
  readonly renewal?: 'auto' | 'manual' | undefined;
  /**
   * Automatic renewal stops this long after the grant; a hand-over that is still limited to a moment is made whole first.
   * Without it, a hold past 2 × ttl is reported once on `locks:slow-hold`.
   * @defaultValue none
   */
  readonly maxHoldMs?: number | undefined;
  /**
   * How much must be left of a lease, in milliseconds, when it is handed out. A hand-over that the store limits to a
   * moment is renewed first; any other grant with this much left or less is given back and tried again. Less than `ttlMs`
   * leaves of itself.
   * @defaultValue 0
   */
  readonly minRemainingMs?: number | undefined;
  /**
   * What an operator sees beside the acquisition id: at most 256 UTF-8 bytes, no control characters.
   * @defaultValue `host:pid`
   */
  readonly label?: string | undefined;
  /**
   * Lets `run` inside `run` of the same resource re-enter through `AsyncLocalStorage`.
   * @defaultValue false
   */
  readonly reentrant?: boolean | undefined;
}

/** Options of one acquire. */
export interface AcquireOptions extends Omit<LockOptions, 'reentrant'> {
  /** Ends the wait: the call rejects with `signal.reason`, and nothing stays behind in the store. */
  readonly signal?: AbortSignal | undefined;
  /** Re-enters this lease, taking turns with its other children. */
  readonly within?: BaseLease | undefined;
  /**
   * Takes the resource from whoever holds it, ahead of those who wait; the robbed see `LOCK_LOST`. Needs the feature
   * `steal` of the backend.
   * @defaultValue false
   */
  readonly steal?: boolean | undefined;
}

/** Options with every default filled in and every value checked. */
export interface ResolvedOptions {
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly autoRenew: boolean;
  readonly maxHoldMs: number;
  readonly minRemainingMs: number;
  readonly label: string;
  readonly reentrant: boolean;
  readonly signal: AbortSignal | undefined;
  readonly within: BaseLease | undefined;
  readonly steal: boolean;
}

/** Core's own floor: of less the drift margin leaves no lease. */
const MIN_TTL_MS = 10;
/** One year: above it a ttl is a mistake, and far below it every store's arithmetic is exact. */
export const MAX_TTL_MS = 31_536_000_000;

export const LOCK_KEYS = [
  'ttlMs',
  'waitMs',
  'renewal',
  'maxHoldMs',
  'minRemainingMs',
  'label',
  'reentrant',
] as const;
const ALL_KEYS = [...LOCK_KEYS, 'signal', 'within', 'steal'] as const;
export const ACQUIRE_KEYS = ALL_KEYS.filter((key) => key !== 'reentrant');

export function builtInDefaults(ttl: BackendCapabilities['ttl']): ResolvedOptions {
  return {
    ttlMs: roundUp(Math.max(30_000, ttl.minMs), ttl.stepMs),
    waitMs: 10_000,
    autoRenew: true,
    maxHoldMs: Number.POSITIVE_INFINITY,
    minRemainingMs: 0,
    label: defaultLabel(),
    reentrant: false,
    signal: undefined,
    within: undefined,
    steal: false,
  };
}

/** @throws LockError `LOCK_INVALID_ARGUMENT` naming the option, its value and what is allowed. */
export function resolveLockOptions(
  base: ResolvedOptions,
  options: LockOptions | undefined,
  ttl: BackendCapabilities['ttl'],
): ResolvedOptions {
  return resolve(base, options, ttl, LOCK_KEYS);
}

/** @throws LockError `LOCK_INVALID_ARGUMENT` naming the option, its value and what is allowed. */
export function resolveAcquireOptions(
  base: ResolvedOptions,
  options: AcquireOptions | undefined,
  ttl: BackendCapabilities['ttl'],
): ResolvedOptions {
  return options === undefined ? base : resolve(base, options, ttl, ACQUIRE_KEYS);
}

function resolve(
  base: ResolvedOptions,
  options: (LockOptions & AcquireOptions) | undefined,
  ttl: BackendCapabilities['ttl'],
  known: readonly string[],
): ResolvedOptions {
  if (options === undefined) return base;
  checkKeys(options, known);
  const ttlMs = options.ttlMs === undefined ? base.ttlMs : checkTtl(options.ttlMs, ttl);
  const given = options.minRemainingMs === undefined ? base.minRemainingMs : options.minRemainingMs;
  // An inherited minRemainingMs that a shorter ttl cannot satisfy is a contradiction too.
  const minRemainingMs = checkDuration('minRemainingMs', given, 0, ttlMs - driftMargin(ttlMs));
  return {
    ttlMs,
    waitMs:
      options.waitMs === undefined
        ? base.waitMs
        : checkDuration('waitMs', options.waitMs, 0, Number.POSITIVE_INFINITY),
    autoRenew:
      options.renewal === undefined
        ? base.autoRenew
        : checkOneOf('renewal', options.renewal, ['auto', 'manual']) === 'auto',
    maxHoldMs:
      options.maxHoldMs === undefined
        ? base.maxHoldMs
        : checkDuration('maxHoldMs', options.maxHoldMs, 1, Number.POSITIVE_INFINITY),
    minRemainingMs,
    label: options.label === undefined ? base.label : checkLabel(options.label),
    reentrant:
      options.reentrant === undefined
        ? base.reentrant
        : checkOneOf('reentrant', options.reentrant, [true, false]),
    signal: options.signal === undefined ? undefined : checkSignal(options.signal),
    within: options.within,
    steal: options.steal === undefined ? false : checkOneOf('steal', options.steal, [true, false]),
  };
}

/** Checks a ttl and rounds it up to the backend's step. */
export function checkTtl(value: unknown, ttl: BackendCapabilities['ttl']): number {
  const floor = Math.max(ttl.minMs, MIN_TTL_MS);
  if (typeof value !== 'number' || !Number.isInteger(value) || value < floor || value > MAX_TTL_MS) {
    const allowed = `a whole number of milliseconds from ${floor} (this backend's floor) to ${MAX_TTL_MS} (one year)`;
    throw mustBe('ttlMs', allowed, value);
  }
  return roundUp(value, ttl.stepMs);
}

/** From `min` to less than `max`, where that is not `Infinity`. */
export function checkDuration(name: string, value: unknown, min: number, max: number): number {
  // Of NaN every comparison is false.
  if (typeof value === 'number' && value >= min && (value < max || value === Infinity)) {
    if (value < Infinity || max === Infinity) return value;
  }
  throw mustBe(
    name,
    `a number of milliseconds from ${min} to ${max === Infinity ? max : `less than ${max}`}`,
    value,
  );
}

function checkOneOf<T>(name: string, value: T, allowed: readonly T[]): T {
  if (!allowed.includes(value)) throw mustBe(name, allowed.join(' or '), value);
  return value;
}

function checkSignal(value: unknown): AbortSignal {
  const signal = value as Partial<AbortSignal> | null;
  if (typeof signal?.aborted !== 'boolean' || typeof signal.addEventListener !== 'function') {
    throw mustBe('signal', 'an AbortSignal', value);
  }
  return value as AbortSignal;
}

/** Refuses what is no object, and a misspelt option, which would be ignored. */
export function checkKeys(options: unknown, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null) throw mustBe('The options', 'an object', options);
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue;
    const meant = known.find((name) => name.toLowerCase() === `${key}ms`.toLowerCase());
    // `signal`, `within` and `steal` belong to one acquire, `reentrant` to the lock.
    const elsewhere = ACQUIRE_KEYS.includes(key as never) ? 'acquire() or run()' : 'lock()';
    const belongs = ALL_KEYS.includes(key as never) ? ` It belongs to ${elsewhere}.` : '';
    throw invalidArgument(
      `There is no option ${quote(key)} here.${meant ? ` Did you mean ${meant}?` : belongs} Known: ${known.join(', ')}.`,
    );
  }
}

function roundUp(value: number, step: number): number {
  return step <= 1 ? value : Math.ceil(value / step) * step;
}

function defaultLabel(): string {
  // A host name is the machine's, not ours: it may have anything in it, and must not make every lock fail.
  return `${hostname()
    .replace(/[^\x20-\x7e]/g, '?')
    .slice(0, 200)}:${process.pid}`;
}
