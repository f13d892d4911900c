import { isLockError, LockError } from '@locks/core';

export type ExceptionName = 'AbortError' | 'InvalidStateError' | 'NotSupportedError';

export function domException(name: ExceptionName, message: string, cause?: unknown): DOMException {
  return new DOMException(message, { name, cause });
}

/** What a request is rejected with whose lock was stolen, or lost in another way. */
export function lockLost(cause: unknown): DOMException {
  const why = cause instanceof Error ? ` ${cause.message}` : '';
  return domException('AbortError', `The lock was taken from its holder.${why}`, cause);
}

/** An error of core as the specification would name it. A store that fails has no name there: it stays a `LockError`. */
export function asException(error: unknown): unknown {
  if (!isLockError(error)) return error;
  switch (error.code) {
    case 'LOCK_LOST':
      return lockLost(error);
    case 'LOCK_CLOSED':
      return domException('AbortError', 'The lock manager was closed.', error);
    case 'LOCK_UNSUPPORTED':
      return domException('NotSupportedError', error.message, error);
    default:
      return error;
  }
}

/** A mistake in the use of this package itself, which the specification does not know. */
export function invalid(message: string): LockError {
  return new LockError('LOCK_INVALID_ARGUMENT', message);
}
