import type { LossReason } from './backend/types.ts';

/** The codes a {@link LockError} can carry. Branch on these, never on a message. */
export type LockErrorCode =
  /** Still contended when `waitMs` was over. */
  | 'LOCK_TIMEOUT'
  /** The lease ended without its holder asking; see `reason`. */
  | 'LOCK_LOST'
  /** The lease was already released by its holder. */
  | 'LOCK_NOT_HELD'
  /** A re-entry that could never get in: it would wait for itself, or upgrade a shared hold. */
  | 'LOCK_REENTRANT'
  /** Two uses of one resource contradict each other, for example in a semaphore's limit. */
  | 'LOCK_CONFLICT'
  /** The backend does not have the feature. */
  | 'LOCK_UNSUPPORTED'
  /** The store failed or did not answer; `cause` is its error. */
  | 'LOCK_BACKEND'
  /** A bad name, option or backend object; nothing was sent. */
  | 'LOCK_INVALID_ARGUMENT'
  /** The lock manager was closed. */
  | 'LOCK_CLOSED';

/** What a {@link LockError} is made with, beside its code and message. */
export interface LockErrorDetails {
  /** The name of the lock. */
  readonly resource?: string | undefined;
  /** The `name` of the backend. */
  readonly backend?: string | undefined;
  /** The error of the store or of the caller that led to this one. */
  readonly cause?: unknown;
  /** With `LOCK_LOST`: why. Absent when `assertValid` found less time left than its caller needs. */
  readonly reason?: LossReason | undefined;
}

// A registered symbol: two copies of core in one process recognise each other's errors.
const brand = Symbol.for('@locks/core/LockError');

// setup: import { isLockError, type Lock } from '@locks/core';
// setup: declare const lock: Lock; declare function work(): Promise<void>;
/**
 * The one error class of `@locks/*`.
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
  /** What happened: to branch on. */
  readonly code: LockErrorCode;
  /** The name of the lock; `undefined` where none is concerned. */
  declare readonly resource: string | undefined;
  /** The `name` of the backend; `undefined` where none is concerned. */
  declare readonly backend: string | undefined;
  /** With `LOCK_LOST`: why. `undefined` when `assertValid` found less time left than its caller needs. */
  declare readonly reason: LossReason | undefined;
  /** With `LOCK_LOST` from `run`: the value of the work, when it had succeeded. */
  declare readonly result?: unknown;

  static {
    // Of the prototype: an error has these properties, and is printed without those that do not concern it.
    Object.assign(this.prototype, { resource: undefined, backend: undefined, reason: undefined });
  }

  constructor(code: LockErrorCode, message: string, details: LockErrorDetails = {}) {
    // `Error` takes only a cause that is there.
    super(message, details);
    this.code = code;
    const { resource, backend, reason } = details;
    if (resource !== undefined) this.resource = resource;
    if (backend !== undefined) this.backend = backend;
    if (reason !== undefined) this.reason = reason;
    Object.defineProperty(this, brand, { value: true });
  }

  /** `instanceof LockError` holds for errors of any copy of core, as {@link isLockError} does. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return this === LockError ? isLockError(value) : super[Symbol.hasInstance](value);
  }
}

/**
 * Whether `error` is a {@link LockError}, of any copy of core, and, if `code` is given, has that code.
 */
export function isLockError(error: unknown, code?: LockErrorCode): error is LockError {
  if (typeof error !== 'object' || error === null || !(brand in error)) return false;
  return code === undefined || (error as { code?: unknown }).code === code;
}

/** The same loss, with the value that the work had returned. */
export function lostWithResult(lost: LockError, result: unknown): LockError {
  const error = new LockError('LOCK_LOST', lost.message, lost);
  Object.defineProperty(error, 'result', { value: result, enumerable: true });
  return error;
}

/** The error for an argument that a function does not take: `LOCK_INVALID_ARGUMENT`. */
export function invalidArgument(message: string, resource?: string): LockError {
  return new LockError('LOCK_INVALID_ARGUMENT', message, { resource });
}

/** A refusal that names an argument, what is allowed for it, and the value that was given. */
export function mustBe(what: string, allowed: string, value: unknown): LockError {
  return invalidArgument(`${what} must be ${allowed}, not ${describe(value)}.`);
}

/** A value for a message: its kind, or itself where it is short. */
export function describe(value: unknown): string {
  switch (typeof value) {
    case 'string':
      // An address in the wrong place may have a password, which must not get into logs.
      return quote(value.replace(/:\/\/.*@/, '://…@'));
    case 'bigint':
      return `${value}n`;
    case 'function':
    case 'symbol':
      return `a ${typeof value}`;
    case 'object':
      if (Array.isArray(value)) return 'an array';
      return value === null ? 'null' : `an object of ${value.constructor?.name || 'no class'}`;
    default:
      return String(value);
  }
}

/** What an error says. One of several, as of an address that stands for several, says nothing itself. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const all: unknown[] = error.message === '' && error instanceof AggregateError ? error.errors : [];
  return [...new Set(all.map(messageOf))].join(', ') || error.message || error.name;
}

/** A text for a message: in quotation marks, with visible control characters, and shortened. */
export function quote(text: string): string {
  return JSON.stringify(text.length <= 40 ? text : `${text.slice(0, 40)}…`);
}
