// What the compiler sees in a CommonJS module of an application.
import { createLocks, isLockError, type LockManager } from '@locks/core';
import { memoryBackend } from '@locks/memory';

export const locks: LockManager = createLocks(memoryBackend());

export async function sell(sku: string): Promise<boolean> {
  try {
    return await locks.lock(sku).run(() => true, { waitMs: 5_000 });
  } catch (error) {
    if (isLockError(error, 'LOCK_TIMEOUT')) return false;
    throw error;
  }
}
