import type { BaseLease, Downgradable, Lease } from '../lease.ts';
import type { HoldsNothingYet, Lock } from '../lock.ts';

// setup: import { createLocks } from '@locks/core'; import { memoryBackend } from '@locks/memory'; const locks = createLocks(memoryBackend());
// setup: declare function lookUp(): Promise<void>; declare function rebuild(): Promise<void>;
/**
 * Two locks on one resource: many readers, or one writer. Requests of both kinds stand in one queue, so neither starves:
 * a waiting writer holds back readers that come later.
 *
 * @example
 * ```ts
 * const cache = locks.readWriteLock('cache:prices');
 * await cache.read.run(() => lookUp());
 * await cache.write.run(() => rebuild());
 * ```
 */
export interface ReadWriteLock<L extends BaseLease = Lease> {
  /** The name of the resource. */
  readonly name: string;
  /** Shared with other readers. Nested in a lease of `write`, by `within`, it re-enters that. */
  readonly read: Lock<L> & HoldsNothingYet;
  /** Alone: the same as `locks.lock(name)`. Nested in a lease of `read` it is refused with `LOCK_REENTRANT`. */
  readonly write: Lock<L & Downgradable> & HoldsNothingYet;
}
