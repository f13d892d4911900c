import { defineHarness } from '@locks/core/conformance';
import { MemoryStore, memoryBackend } from '@locks/memory';

const store = new MemoryStore();

/** Plain JavaScript, so that every Node that users may have runs it. */
export default defineHarness({
  module: import.meta.url,
  name: 'memory',
  createBackend: () => memoryBackend(store),
  faults: {
    async evict(resource) {
      const holder = store.holder(resource);
      if (holder !== undefined) store.forget(resource, holder.request.acquisitionId);
    },
  },
  timing: { ttlMs: 150, slackMs: 150, idleGapMs: 100 },
});
