import { defineHarness } from '@locks/core/conformance';
import { quorumBackend } from '@locks/quorum';
import { memoryBackend, MemoryStore } from '@locks/memory';

const stores = [new MemoryStore(), new MemoryStore(), new MemoryStore()];

/** A quorum of three stores inside one process. */
export default defineHarness({
  module: import.meta.url,
  name: 'quorum-memory',
  server: 'none (in process)',
  topology: '3 nodes',
  createBackendUnder: 'none',
  createBackend: () => quorumBackend(stores.map((store) => memoryBackend(store))),
  faults: {
    corrupt: 'none',
    async evict(resource) {
      for (const store of stores) store.forceRelease(resource, undefined);
    },
  },
  timing: { ttlMs: 300, slackMs: 300, idleGapMs: 100 },
});
