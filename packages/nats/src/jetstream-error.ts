/** An error that JetStream answered. */
export class JetStreamError extends Error {
  override readonly name = 'JetStreamError';
  /** JetStream's own number of the error: 10059. */
  readonly code: number;
  /** The kind of the error, as a status of HTTP. */
  readonly status: number;

  constructor({ err_code: code = 0, code: status = 0, description = 'unknown error' }: ErrorAnswer) {
    super(description);
    this.code = code;
    this.status = status;
  }
}

/** The bucket cannot be used, and repeating the call does not help. */
export class BucketError extends Error {
  override readonly name = 'BucketError';
}

/** The `error` of an answer of JetStream. */
export interface ErrorAnswer {
  readonly code?: number;
  readonly err_code?: number;
  readonly description?: string;
}

export const STREAM_NOT_FOUND = 10059;
export const OTHER_CONFIGURATION = 10058;
export const NO_MESSAGE = 10037;
/** More replicas than a server alone, or than the servers of its cluster, can keep. */
export const TOO_MANY_REPLICAS: ReadonlySet<number> = new Set([10074, 10005]);
/** For the account; for the server. */
const NOT_ENABLED = new Set([10039, 10076]);
/** The record has another version, or one that is being written now. */
const WRONG_LAST_SEQUENCE = new Set([10071, 10164]);
/** Failures with a status of 500 and above that do not pass: not enabled, the bucket is full, more replicas than servers. */
const LASTING = new Set([...NOT_ENABLED, 10074, 10077, 10005]);
const PASSING_STATUS = new Set([408, 429]);
const PASSING_NAMES = new Set(['TimeoutError', 'ConnectionError', 'DisconnectedError']);

export function isWrongLastSequence(error: unknown): boolean {
  return error instanceof JetStreamError && WRONG_LAST_SEQUENCE.has(error.code);
}

export function isNotEnabled(error: unknown): boolean {
  return error instanceof JetStreamError && NOT_ENABLED.has(error.code);
}

/**
 * Nobody listened on the subject of a request: JetStream is not enabled, the bucket was deleted, or it has no leader for the moment.
 * Recognized by its name, as all errors of the client: another copy of the package may have made it.
 */
export function hasNoResponders(error: unknown): boolean {
  const { name, cause } = (error ?? {}) as { name?: unknown; cause?: unknown };
  return name === 'NoResponders' || (name === 'RequestError' && hasNoResponders(cause));
}

export function isDenied(error: unknown): boolean {
  const { name, cause } = (error ?? {}) as { name?: unknown; cause?: unknown };
  return name === 'PermissionViolationError' || (name === 'RequestError' && isDenied(cause));
}

/** Whether the same request may succeed if repeated. */
export function isPassing(error: unknown): boolean {
  if (error instanceof JetStreamError) {
    return PASSING_STATUS.has(error.status) || (error.status >= 500 && !LASTING.has(error.code));
  }
  const { name } = (error ?? {}) as { name?: unknown };
  return PASSING_NAMES.has(name as string) || hasNoResponders(error);
}
