export { LockError, isLockError, type LockErrorCode, type LockErrorDetails } from './errors.ts';
export type * from './backend/types.ts';
