import { NoAnswerError } from '@locks/core/backend';

/** The server did not answer in time; its connection was given up. */
export class MysqlNoAnswerError extends NoAnswerError {
  readonly code = 'NO_ANSWER';
}

/** The tables could not be migrated yet, most often because another client migrates them. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError';
  readonly code = 'NOT_MIGRATED';
  /** Whether another client migrates them. */
  readonly isUnderWay: boolean;

  constructor(message: string, isUnderWay: boolean) {
    super(message);
    this.isUnderWay = isUnderWay;
  }
}

/**
 * The error codes of a collision of two transactions: the server undid this one, or it timed out on the other. It had no
 * effect.
 */
const COLLISIONS = new Set([1205, 1213]);

/** The error codes after which the same call may succeed, on this server or on the one that takes its place. */
const PASSING = new Set([
  ...COLLISIONS,
  // Too many connections, in total or for one user.
  1040,
  1203,
  1226,
  // Shutting down; the statement or its connection was killed.
  1053,
  1077,
  1078,
  1079,
  1080,
  1158,
  1159,
  1160,
  1161,
  1184,
  1317,
  1927,
  3169,
  4031,
  // Read-only: until the fail-over is done.
  1290,
  1792,
  1836,
  // The tables are missing: they are made again.
  1146,
  // Galera: the node is not ready.
  1047,
  // The time limit of statements was over.
  1028,
  1969,
  3024,
]);

const PASSING_CODES = new Set([
  'NO_ANSWER',
  'PROTOCOL_CONNECTION_LOST',
  'PROTOCOL_SEQUENCE_TIMEOUT',
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'ETIMEDOUT',
  'EPIPE',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ENETRESET',
  'EAI_AGAIN',
]);

interface MaybeMysqlError {
  readonly code?: unknown;
  readonly errno?: unknown;
  readonly message?: unknown;
}

export function isCollision(error: unknown): boolean {
  return COLLISIONS.has((error as MaybeMysqlError | null)?.errno as number);
}

/**
 * What a statement meets on a connection that the application has returned with locked tables (1099, 1100, 1223), in a transaction
 * that may only read (1792), or in the middle of an XA transaction (1399).
 */
const LEFT_BEHIND = new Set([1099, 1100, 1223, 1399, 1792]);

export function isLeftBehind(error: unknown): boolean {
  return LEFT_BEHIND.has((error as MaybeMysqlError | null)?.errno as number);
}

/** Whether `max_join_size` of the session refuses the statement, by what the server expects it to read. */
export function isTooBigSelect(error: unknown): boolean {
  return (error as MaybeMysqlError | null)?.errno === 1104;
}

export function isOverflow(error: unknown): boolean {
  return (error as MaybeMysqlError | null)?.errno === 1690;
}

export function isMissingTable(error: unknown): boolean {
  return (error as MaybeMysqlError | null)?.errno === 1146;
}

/** Whether the connection broke, so that nobody knows whether the statement ran. */
export function isBroken(error: unknown): boolean {
  const { code, message } = (error ?? {}) as MaybeMysqlError;
  if (PASSING_CODES.has(code as string)) return true;
  // mysql2 has no code for a pooled connection that was closed since it was last used.
  return typeof message === 'string' && /connection is in closed state|Connection lost/i.test(message);
}

export function isRetryableError(error: unknown): boolean {
  if (isBroken(error)) return true;
  const { errno, message } = (error ?? {}) as MaybeMysqlError;
  if (error instanceof MigrationError) return true;
  if (PASSING.has(errno as number)) return true;
  // The pool does not queue, or its queue is full.
  return message === 'No connections available.' || message === 'Queue limit reached.';
}
