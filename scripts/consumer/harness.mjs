// The reference backend as a third party would describe his own.
import { defineHarness } from '@locks/core/conformance';
import { memoryBackend, MemoryStore } from '@locks/memory';

const store = new MemoryStore();

export const harness = defineHarness({
  module: import.meta.url,
  name: 'memory',
  createBackend: () => memoryBackend(store),
  faults: {
    async evict(resource) {
      const holder = store.holder(resource);
      if (holder !== undefined) store.forget(resource, holder.request.acquisitionId);
    },
  },
  timing: { ttlMs: 500, slackMs: 500, idleGapMs: 500 },
});
