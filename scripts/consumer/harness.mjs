// The reference backend, described as a third party would describe its own.
import { defineHarness } from '@locks/core/conformance';
import { memoryBackend, MemoryStore } from '@locks/memory';

const store = new MemoryStore();

export const harness = defineHarness({
  module: import.meta.url,
  name: 'memory',
  createBackend: () => memoryBackend(store),
  createBackendUnder: 'none',
  faults: {
    corrupt: 'none',
    async evict(resource) {
      store.forceRelease(resource, undefined);
    },
  },
  timing: { ttlMs: 300, slackMs: 300, idleGapMs: 300 },
});
