import { createLocks, type LockManager, type ManagerOptions } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { defineHarness, type Harness } from '@locks/core/conformance';
import harness from './harness.ts';

/** Stands for a library of yours: it counts the locks that its users make. */
function countedLocks(backend: LockBackend, options?: ManagerOptions): LockManager {
  const locks: LockManager = createLocks(backend, options);
  const made = { locks: 0 };
  return new Proxy(locks, {
    get(target, key) {
      if (key === 'lock') made.locks += 1;
      const value: unknown = Reflect.get(target, key);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

export default defineHarness({
  ...harness,
  module: import.meta.url,
  name: 'table, through a layer',
  createLocks: countedLocks as Harness['createLocks'],
});
