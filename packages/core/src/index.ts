export {
  type CloseOptions,
  createLocks,
  type FencedLockManager,
  type LockManager,
  type LockManagerOf,
  type PingOptions,
} from './create-locks.ts';
export type {
  ProtocolAcquisition,
  ProtocolClient,
  ProtocolEvent,
  ProtocolMethod,
  ProtocolOutcome,
  ProtocolStep,
} from './protocol.ts';
export {
  type ChainMember,
  type CircleMember,
  isLockError,
  LockError,
  type LockErrorCode,
  type LockErrorDetails,
} from './errors.ts';
export { type LockEvent, type LockEvents, type LockTrace, onLockEvent } from './events.ts';
export type { AllOptions, MultiLease, MultiLock } from './compose/multi-lock.ts';
export { Locked, locked, type LockedDecorator, type LockedOptions, type LockName } from './compose/locked.ts';
export type { RenewalThread } from './lifetime/renewal-thread.ts';
export type { ReadWriteLock } from './compose/read-write-lock.ts';
export type { PermitOptions, Semaphore } from './compose/semaphore.ts';
export type { BaseLease, Downgradable, FencedLease, Lease, LeaseOf } from './lease.ts';
export type { HoldsNothingYet, Lock } from './lock.ts';
export type { AcquireOptions, LockOptions, ManagerOptions, TryAcquireOptions } from './options.ts';
export type {
  BackendCapabilities,
  BackendFeature,
  Holder,
  LockMode,
  LossReason,
  ResourceState,
  Waiter,
} from './backend/types.ts';
