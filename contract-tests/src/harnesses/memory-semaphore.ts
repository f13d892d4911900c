import { defineHarness } from '@locks/core/conformance';
import { semaphoreOfOne } from '../fixtures/semaphore-of-one.ts';
import { withoutFeatures } from '../fixtures/without-features.ts';
import memory from './memory.ts';

/** The suite with a semaphore of one in place of the mutex. */
export default defineHarness({
  ...memory,
  module: import.meta.url,
  name: 'memory-semaphore',
  // Permits are not transferred.
  createBackendUnder: 'none',
  createBackend: async () => semaphoreOfOne(withoutFeatures(await memory.createBackend(), 'transfer')),
});
