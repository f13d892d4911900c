export { leaseOf, Lock } from './lock.ts';
export { LockManager } from './lock-manager.ts';
export type {
  LockGrantedCallback,
  LockInfo,
  LockManagerSnapshot,
  WebLock,
  WebLockMode,
  WebLockOptions,
  WebLocks,
  WebLocksOptions,
} from './types.ts';
export { webLocks } from './web-locks.ts';
