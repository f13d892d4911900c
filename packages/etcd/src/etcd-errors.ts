// Errors are compared by name: a process may have two copies of etcd3, and its errors carry no code.
const RETRYABLE_NAMES = new Set([
  'GRPCUnavailableError',
  'GRPCDeadlineExceededError',
  'GRPCCancelledError',
  'GRPCAbortedError',
  'GRPCInternalError',
  'GRPCUnknownError',
  'BrokenCircuitError',
  'EtcdWatchStreamEnded',
  'EtcdLeaseInvalidError',
  'EtcdInvalidAuthTokenError',
  'NoAnswerError',
]);

/** The store changed between read and write too often, or the hold ended meanwhile. */
export class ChangedMeanwhileError extends Error {
  override readonly name = 'ChangedMeanwhileError';
}

/** The number of tries of a write that depends on an earlier read, before the whole step fails. */
const TRIES = 20;

/**
 * Repeats a step until it has a result: `undefined` says that the store changed between its read and its write.
 *
 * @param message - of the error after the last try
 */
export async function retryWhileChanging<T>(message: string, step: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const result = await step();
    if (result !== undefined) return result;
  }
  throw new ChangedMeanwhileError(message);
}

// Streams fail with gRPC's own codes: cancelled, unknown, deadline, aborted, internal, unavailable.
const RETRYABLE_CODES = new Set([1, 2, 4, 10, 13, 14]);

/** Whether the same call may succeed if repeated. An unknown error is not repeated. */
export function isRetryableEtcdError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  if (typeof code === 'number' && RETRYABLE_CODES.has(code)) return true;
  if (error instanceof ChangedMeanwhileError || RETRYABLE_NAMES.has(error.constructor.name)) return true;
  // A full disk has the same error class, but only an excess of requests ends by itself.
  return error.constructor.name === 'GRPCResourceExhastedError' && /too many requests/.test(error.message);
}

/** Whether no member could be reached, as the client knows. */
export function isUnavailable(error: unknown): error is Error {
  return error instanceof Error && error.constructor.name === 'GRPCUnavailableError';
}

/** Whether the application has closed the client: the class of the error is that of other failures too. */
export function isClosedClient(error: unknown): boolean {
  return (
    error instanceof Error &&
    /\b(?:channel|client) (?:has been |was already |was )closed/i.test(error.message)
  );
}

export function isLeaseGone(error: unknown): boolean {
  return error instanceof Error && error.constructor.name === 'EtcdLeaseInvalidError';
}
