import type { LockManager } from '@locks/core';

/** Two managers of one store, as two processes have them. */
export interface ManagerPair {
  readonly one: LockManager;
  readonly other: LockManager;
}
