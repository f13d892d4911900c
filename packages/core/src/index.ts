export { createLocks, type LockManager } from './create-locks.ts';
export { isLockError, LockError, type LockErrorCode, type LockErrorDetails } from './errors.ts';
export type { LockEvent, LockEvents } from './events.ts';
export type { BaseLease, Lease, LeaseOf } from './lease.ts';
export type { Lock } from './lock.ts';
export type { AcquireOptions, LockOptions } from './options.ts';
export type * from './backend/types.ts';
