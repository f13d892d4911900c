import { defineHarness } from '@locks/core/conformance';
import { withAllOfOne } from '../fixtures/instead-of-mutex.ts';
import { withoutFeatures } from '../fixtures/without-features.ts';
import memory from './memory.ts';

/** The suite with the kind of lock that the name says in place of the mutex. */
export default defineHarness({
  ...memory,
  module: import.meta.url,
  name: 'memory-all-of-one',
  // A set is not transferred, and has no limit of waiters.
  createBackendUnder: 'none',
  createBackend: async () => withoutFeatures(await memory.createBackend(), 'transfer', 'max-waiters'),
  createLocks: withAllOfOne,
});
