export { leaseOf } from './lock.ts';
export {
  type LockGrantedCallback,
  type LockInfo,
  type LockManagerSnapshot,
  type WebLock,
  type WebLockMode,
  type WebLockOptions,
  type WebLocks,
  webLocks,
  type WebLocksOptions,
} from './web-locks.ts';
