// By name: two copies of etcd3 may live in one process, and its errors carry no code.
const passing = new Set([
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

/** No answer came in time. What was asked may have happened. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';
}

/** The store changed between reading and writing more often than an attempt puts up with. */
export class ChangedMeanwhileError extends Error {
  override readonly name = 'ChangedMeanwhileError';
}

// Streams fail with gRPC's own errors: cancelled, unknown, deadline, aborted, internal, unavailable.
const passingCodes = new Set([1, 2, 4, 10, 13, 14]);

/** Whether the same call may succeed if repeated. What is not known is not repeated. */
export function isRetryableEtcdError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as { code?: unknown };
  if (typeof code === 'number' && passingCodes.has(code)) return true;
  if (error instanceof ChangedMeanwhileError || passing.has(error.constructor.name)) return true;
  // Also what a full disk is told with: only a crowd passes by itself.
  return error.constructor.name === 'GRPCResourceExhastedError' && /too many requests/.test(error.message);
}

export function isLeaseGone(error: unknown): boolean {
  return error instanceof Error && error.constructor.name === 'EtcdLeaseInvalidError';
}
