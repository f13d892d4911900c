import { defineHarness } from '@locks/core/conformance';
import { memoryBackend, MemoryStore } from '@locks/memory';
import { SessionBackend, sessionBackendOf } from '../fixtures/session-backend.ts';

const store = new MemoryStore();

/** A fixture: the memory backend with tenure `session`, which tests the cases about sessions. */
export default defineHarness({
  module: import.meta.url,
  name: 'session-memory',
  server: 'none (in process)',
  createBackendUnder: 'none',
  createBackend: () => new SessionBackend(memoryBackend(store), 'session-memory'),
  faults: {
    corrupt: 'none',
    endSession: (backend) => sessionBackendOf(backend).endSession(),
    async evict(resource) {
      store.forceRelease(resource, undefined);
    },
  },
  timing: { ttlMs: 150, slackMs: 150, idleGapMs: 100 },
});
