import type { LockBackend } from '@locks/core/backend';
import { LockClient } from './lock-client.ts';
import { makeLockManager } from './lock-manager.ts';
import type { WebLocks, WebLocksOptions } from './types.ts';

// setup: import { memoryBackend } from '@locks/memory'; import { webLocks } from '@locks/web-locks';
// setup: declare function sell(lock: unknown): Promise<void>;
/**
 * The Web Locks API on a backend: code written for `navigator.locks` runs unchanged, across machines.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option or a backend that contradicts itself
 * @example
 * ```ts
 * const locks = webLocks(memoryBackend());
 * await locks.request('sku:42', async (lock) => sell(lock));
 * ```
 * @see https://w3c.github.io/web-locks/
 */
export function webLocks(backend: LockBackend, options?: WebLocksOptions): WebLocks {
  return makeLockManager(new LockClient(backend, options));
}
