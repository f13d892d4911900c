import { defineHarness } from '@locks/core/conformance';
import { memoryBackend, MemoryStore } from '@locks/memory';

const store = new MemoryStore();

/** The reference backend: every client of the process shares one store. */
export default defineHarness({
  module: import.meta.url,
  name: 'memory',
  server: 'none (in process)',
  createBackend: () => memoryBackend(store),
  faults: {
    async evict(resource) {
      store.forceRelease(resource, undefined);
    },
  },
  timing: { ttlMs: 150, slackMs: 150, idleGapMs: 100 },
});
