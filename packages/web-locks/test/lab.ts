import type { LockBackend } from '@locks/core/backend';
import { MemoryStore, memoryBackend } from '@locks/memory';
import { onTestFinished } from 'vitest';
import { type WebLocks, type WebLocksOptions, webLocks } from '../src/index.ts';

/** Closed after the test. */
export const make = (backend: LockBackend = memoryBackend(), options?: WebLocksOptions): WebLocks => {
  const locks = webLocks(backend, options);
  onTestFinished(() => locks.close());
  return locks;
};

/** Two clients of one store. */
export const two = (ttlMs?: number): [WebLocks, WebLocks] => {
  const store = new MemoryStore();
  return [make(memoryBackend(store), { ttlMs }), make(memoryBackend(store), { ttlMs })];
};
