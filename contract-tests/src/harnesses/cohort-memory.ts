import { cohortBackend } from '@locks/cohort';
import { defineHarness } from '@locks/core/conformance';
import { memoryBackend, MemoryStore } from '@locks/memory';

const store = new MemoryStore();

/**
 * Cohorts over the reference backend. They may pass a lease on for longer than a machine stands still, so that the cases see turns
 * end for other reasons than the time.
 */
export default defineHarness({
  module: import.meta.url,
  name: 'cohort-memory',
  server: 'none (in process)',
  createBackendUnder: 'none',
  createBackend: () => cohortBackend(memoryBackend(store), { turns: 3, withinMs: 300 }),
  faults: {
    corrupt: 'none',
    async evict(resource) {
      store.forceRelease(resource, undefined);
    },
  },
  timing: { ttlMs: 150, slackMs: 150, idleGapMs: 100 },
});
