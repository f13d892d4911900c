import type { BaseLease, Downgradable, Lease } from '../lease.ts';
import type { HoldsNothingYet, Lock } from '../lock.ts';

// setup: import { createLocks } from '@locks/core'; import { memoryBackend } from '@locks/memory'; const locks = createLocks(memoryBackend());
// setup: declare function lookUp(): Promise<void>; declare function rebuild(): Promise<void>;
/**
 * Two locks on one name: many readers, or one writer. Both wait in one queue, so neither starves: a waiting writer holds back later
 * readers.
 *
 * @example
 * ```ts
 * const cache = locks.readWriteLock('cache:prices');
 * await cache.read.run(() => lookUp());
 * await cache.write.run(() => rebuild());
 * ```
 */
export interface ReadWriteLock<L extends BaseLease = Lease> {
  readonly name: string;
  /** The lock of readers, shared. Inside a `write` lease it re-enters that lease by `within`. */
  readonly read: Lock<L> & HoldsNothingYet;
  /** The lock of a writer, exclusive: the same as `locks.lock(name)`. Inside a `read` lease it is refused with `LOCK_REENTRANT`. */
  readonly write: Lock<L & Downgradable> & HoldsNothingYet;
}
