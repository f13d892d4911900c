import { defineHarness } from '@locks/core/conformance';
import { slowStore } from '../fixtures/slow-store.ts';
import memory from './memory.ts';

/** A fixture: a store that answers after 300 ms, which the suite must pass. */
export default defineHarness({
  ...memory,
  module: import.meta.url,
  name: 'memory-slow',
  createBackendUnder: 'none',
  createBackend: async () => slowStore(await memory.createBackend(), 300),
  timing: { ttlMs: 2_000, slackMs: 1_000, idleGapMs: 500 },
});
