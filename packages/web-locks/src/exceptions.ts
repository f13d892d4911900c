import { isLockError } from '@locks/core';

export type ExceptionName = 'AbortError' | 'InvalidStateError' | 'NotSupportedError';

export function domException(name: ExceptionName, message: string, cause?: unknown): DOMException {
  return new DOMException(message, { name, cause });
}

export function closedError(name: 'AbortError' | 'InvalidStateError', cause?: unknown): DOMException {
  return domException(name, 'The lock manager was closed.', cause);
}

/** The rejection of a request whose lock was stolen, released by `close()`, or lost in another way. */
export function lockLost(cause: unknown): DOMException {
  if (isLockError(cause, 'LOCK_LOST') && cause.reason === 'closed') return closedError('AbortError', cause);
  const why = cause instanceof Error ? ` ${cause.message}` : '';
  return domException('AbortError', `The lock was taken from its holder.${why}`, cause);
}

/** An error of core under the name that the specification has for it. A failure of the store has none: it stays a `LockError`. */
export function asException(error: unknown): unknown {
  if (!isLockError(error)) return error;
  switch (error.code) {
    case 'LOCK_LOST':
      return lockLost(error);
    case 'LOCK_CLOSED':
      return closedError('AbortError', error);
    case 'LOCK_UNSUPPORTED':
      return domException('NotSupportedError', error.message, error);
    default:
      return error;
  }
}
