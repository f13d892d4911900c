import { LockError } from '@locks/core';

export function invalidArgument(message: string): LockError {
  return new LockError('LOCK_INVALID_ARGUMENT', message);
}
