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
      for (const { request } of store.holders(resource)) store.forget(resource, request.acquisitionId);
    },
  },
  timing: { ttlMs: 150, slackMs: 150, idleGapMs: 100 },
});
