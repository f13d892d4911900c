import { defineHarness } from '@locks/core/conformance';
import { coarseStore } from '../fixtures/coarse-store.ts';
import memory from './memory.ts';

const STEP_MS = 1_000;

/** A fixture: a store with ttls in whole seconds, which the suite must pass. */
export default defineHarness({
  ...memory,
  module: import.meta.url,
  name: 'memory-coarse',
  createBackendUnder: 'none',
  createBackend: async () => coarseStore(await memory.createBackend(), STEP_MS),
  timing: { slackMs: 300, idleGapMs: STEP_MS },
});
