import type { LossReason } from './backend/types.ts';

/** The code of a {@link LockError}. Branch on it, never on a message. */
export type LockErrorCode =
  /** The lock was busy until `waitMs` was over. The message names the holder. */
  | 'LOCK_TIMEOUT'
  /** The lock is busy, and the call does not wait: `waitMs` 0, or `whenContended: 'refuse'`. The message names the holder. */
  | 'LOCK_CONTENDED'
  /** As many wait for the lock as `maxWaiters` allows, or as the store has room for. */
  | 'LOCK_QUEUE_FULL'
  /** A newer call of `newestWins` of `@locks/once` waits for the lock. */
  | 'LOCK_SUPERSEDED'
  /** A slot of `once` of `@locks/once` lies in the future of the store: the clock that gave it is ahead. Nothing ran, nothing was recorded. */
  | 'LOCK_CLOCK_SKEW'
  /** The lease ended before its release; `reason` says why. Another process may hold the lock. */
  | 'LOCK_LOST'
  /** The lease is held, for less time than `assertValid(minRemainingMs)` asks for. */
  | 'LOCK_EXPIRES_SOON'
  /** The lease was used after its own release or transfer, or the lease of a ticket is not held any more. */
  | 'LOCK_NOT_HELD'
  /** The nested acquire would wait for itself, or upgrade a shared lease. */
  | 'LOCK_REENTRANT'
  /** The wait is in a circle: what it waits for is held by code, here or in another process, that waits for what this code holds. `circle` tells. */
  | 'LOCK_DEADLOCK'
  /** Two uses of one name contradict each other, for example two limits of a semaphore. */
  | 'LOCK_CONFLICT'
  /** The backend lacks the mode or feature, or the store is too old. */
  | 'LOCK_UNSUPPORTED'
  /** The store failed or gave no answer; `cause` is its error. */
  | 'LOCK_BACKEND'
  /** A name, option or backend object is wrong; nothing was sent. */
  | 'LOCK_INVALID_ARGUMENT'
  /** The lock manager, the backend or the client under it is closed, or closes. */
  | 'LOCK_CLOSED';

/** One of those who wait for each other: it holds a lock, and waits for the lock that the next one holds. */
export interface CircleMember {
  /** The name of the lock that it holds. */
  readonly name: string;
  /** The label of its lease. */
  readonly label: string | undefined;
  /** The name of the lock that it waits for. */
  readonly waitsFor: string;
}

/** One of those that a wait waits for: it holds a lock, and may itself wait for the lock that the next one holds. */
export interface ChainMember {
  /** The name of the lock that it holds. */
  readonly name: string;
  /** The identity of its acquisition in the store. */
  readonly acquisitionId: string;
  /** The label of its lease. */
  readonly label: string | undefined;
  /** How long it has held the lock, in whole milliseconds, where that is known. */
  readonly heldForMs: number | undefined;
  /** How long its lease lasts without a renewal, in milliseconds, where that is known. */
  readonly expiresInMs: number | undefined;
  /** The name of the lock that it waits for; `undefined` where it tells of no wait. */
  readonly waitsFor: string | undefined;
}

/** The details of a new {@link LockError}, besides code and message. */
export interface LockErrorDetails {
  readonly lockName?: string | undefined;
  /** The `name` of the backend. */
  readonly backend?: string | undefined;
  /** The error of the store or of the caller behind this one. */
  readonly cause?: unknown;
  /** Why a lease was lost, with `LOCK_LOST`. */
  readonly reason?: LossReason | undefined;
  /** For how long the event loop had stood still when a loss was found, in milliseconds, with `LOCK_LOST`. */
  readonly blockedMs?: number | undefined;
  /** Who waits for whom, with `LOCK_DEADLOCK`. */
  readonly circle?: readonly CircleMember[] | undefined;
  /** Who was waited for, with `LOCK_TIMEOUT`. */
  readonly chain?: readonly ChainMember[] | undefined;
}

/** The properties of an error that not every error has. */
const DETAILS = ['lockName', 'backend', 'reason', 'blockedMs', 'circle', 'chain'] as const;
// The symbol is registered: two copies of core in one process recognise each other's errors.
const brand = Symbol.for('@locks/core/LockError');

// setup: import { isLockError, type Lock } from '@locks/core';
// setup: declare const lock: Lock; declare function work(): Promise<void>;
/**
 * Every failure of a lock. The error of a store is its `cause`.
 *
 * @example
 * ```ts
 * try {
 *   await lock.run(work, { waitMs: 500 });
 * } catch (error) {
 *   if (!isLockError(error, 'LOCK_TIMEOUT')) throw error;
 *   // busy: come back later
 * }
 * ```
 */
export class LockError extends Error {
  override readonly name = 'LockError';
  /** The kind of failure. */
  readonly code: LockErrorCode;
  /** The name of the lock; `undefined` where no lock is concerned. */
  declare readonly lockName: string | undefined;
  /** The `name` of the backend; `undefined` where no backend is concerned. */
  declare readonly backend: string | undefined;
  /** Why a lease was lost, with `LOCK_LOST`; otherwise `undefined`. */
  declare readonly reason: LossReason | undefined;
  /**
   * For how long at least the event loop had stood still when the loss was found, in milliseconds, with `LOCK_LOST`; otherwise `undefined`.
   * A process that was stopped, or whose machine slept, stood still, too.
   */
  declare readonly blockedMs: number | undefined;
  /** Who waits for whom, beginning with the code that got this error, with `LOCK_DEADLOCK`; otherwise `undefined`. */
  declare readonly circle: readonly CircleMember[] | undefined;
  /**
   * Who was waited for, with `LOCK_TIMEOUT`: a holder of the lock, a holder of the lock that this one waits for, and so on, as far as it was known;
   * otherwise `undefined`.
   */
  declare readonly chain: readonly ChainMember[] | undefined;
  /** The value of the work that had succeeded: with `LOCK_LOST` from a `run`, and where `coalesce` of `@locks/once` cannot store it. */
  declare readonly result?: unknown;

  static {
    // The prototype has these properties: so every error has them, and is printed without those that do not concern it.
    for (const name of DETAILS) Object.assign(this.prototype, { [name]: undefined });
  }

  constructor(code: LockErrorCode, message: string, details: LockErrorDetails = {}) {
    // `Error` takes only a cause that is there.
    super(message, details);
    this.code = code;
    for (const name of DETAILS)
      if (details[name] !== undefined) Object.assign(this, { [name]: details[name] });
    Object.defineProperty(this, brand, { value: true });
  }

  /** `instanceof LockError` holds for errors of any copy of core, as {@link isLockError} does. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return this === LockError ? isLockError(value) : super[Symbol.hasInstance](value);
  }
}

/** Whether `error` is a {@link LockError} of any copy of core, and has `code` if one is given. */
export function isLockError(error: unknown, code?: LockErrorCode): error is LockError {
  if (typeof error !== 'object' || error === null || !(brand in error)) return false;
  return code === undefined || (error as { code?: unknown }).code === code;
}

/** Copies a loss, with the value that the work had returned. */
export function lostWithResult(lost: LockError, result: unknown): LockError {
  const error = new LockError('LOCK_LOST', lost.message, lost);
  Object.defineProperty(error, 'result', { value: result, enumerable: true });
  return error;
}

/** The error for an argument that a function does not take: `LOCK_INVALID_ARGUMENT`. */
export function invalidArgument(message: string, lockName?: string): LockError {
  return new LockError('LOCK_INVALID_ARGUMENT', message, { lockName });
}

/** A refusal that names an argument, what is allowed for it, and the value that was given. */
export function mustBe(what: string, allowed: string, value: unknown): LockError {
  return invalidArgument(`${what} must be ${allowed}, not ${describe(value)}.`);
}

/** A value for a message: its kind, or itself where it is short. */
export function describe(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return quote(withoutPassword(value));
    case 'bigint':
      return `${value}n`;
    case 'function':
    case 'symbol':
      return `a ${typeof value}`;
    case 'object':
      if (Array.isArray(value)) return value.length === 0 ? 'an empty array' : 'an array';
      if (value instanceof Promise) return 'a promise: await it first';
      return value === null ? 'null' : `an object of ${value.constructor?.name || 'no class'}`;
    default:
      return String(value);
  }
}

/** An address in the wrong place may have a password, which must not get into logs. */
function withoutPassword(text: string): string {
  return text
    .replace(/:\/\/.*@/, '://…@')
    .replace(/^[^\s/@]*:.*@/, '…@')
    .replace(/\b(pass\w*|pwd|secret|token)=[^&;\s]+/gi, '$1=…');
}

/** The message of an error. One that stands for several, as for several addresses of a name, has an empty message itself. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const all: unknown[] = error.message === '' && error instanceof AggregateError ? error.errors : [];
  return [...new Set(all.map(messageOf))].join(', ') || error.message || error.name;
}

/** A text for a message: in quotation marks, with visible control characters, and shortened. */
export function quote(text: string): string {
  return JSON.stringify(text.length <= 40 ? text : `${text.slice(0, 40)}…`);
}
