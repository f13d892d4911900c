/** Names of the driver's errors after which the same call may succeed. By name: another copy of the package may have made them. */
const PASSING_NAMES = new Set([
  'MongoNetworkError',
  'MongoNetworkTimeoutError',
  'MongoServerSelectionError',
  'MongoPoolClearedError',
  // For those that waited while the first connection of a client could not be made.
  'MongoTopologyClosedError',
  'PoolClearedOnNetworkError',
  'MongoWaitQueueTimeoutError',
  // Written, but not yet by a majority.
  'MongoWriteConcernError',
]);

/** Codes of the server after which the same call may succeed, there or at the next primary. */
const PASSING_CODES = new Set([
  // Host unreachable, host not found, network timeout, socket exception.
  ...[6, 7, 89, 9001],
  // The time limit was over: of the operation, of the operation, of the write concern.
  ...[50, 262, 64],
  // Shutting down, stepped down, no primary (10107, 10058, 13435, 13436), interrupted by either.
  ...[91, 189, 10107, 10058, 13435, 13436, 11600, 11602],
  // No member for the read preference; reads of a majority are not possible yet.
  ...[133, 134],
  // Sharded: the router's view of the shards is old.
  ...[63, 150, 13388],
  // A write conflict; too many operations at once.
  ...[112, 462],
]);

/** Of a socket, where the driver hands its error on. */
const SOCKET_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'ETIMEDOUT',
  'EPIPE',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);

/** The driver's errors for a call through a client that was closed. */
const CLOSED_NAMES = new Set(['MongoNotConnectedError', 'MongoClientClosedError']);

export function isClosedClient(error: unknown): boolean {
  return CLOSED_NAMES.has((error as MaybeMongoError | undefined)?.name as string);
}

export const DUPLICATE_KEY = 11_000;
export const UNAUTHORIZED = 13;

interface MaybeMongoError {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly errorLabels?: unknown;
}

export function codeOf(error: unknown): unknown {
  return ((error ?? {}) as MaybeMongoError).code;
}

export function isPassing(error: unknown): boolean {
  const { name, code, errorLabels = [] } = (error ?? {}) as MaybeMongoError;
  if (PASSING_NAMES.has(name as string) || PASSING_CODES.has(code as number)) return true;
  if (SOCKET_CODES.has(code as string)) return true;
  return Array.isArray(errorLabels) && errorLabels.includes('RetryableWriteError');
}
