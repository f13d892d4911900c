import { defineHarness } from '@locks/core/conformance';
import { memoryBackend, MemoryStore } from '@locks/memory';
import { SessionBackend, sessionBackendOf } from '../sessions/session-backend.ts';

const store = new MemoryStore();

/** A fixture: the memory backend with tenure `session`, to prove the cases about sessions. */
export default defineHarness({
  module: import.meta.url,
  name: 'session-memory',
  server: 'none (in process)',
  createBackend: () => new SessionBackend(memoryBackend(store), 'session-memory'),
  faults: {
    endSession: (backend) => sessionBackendOf(backend).endSession(),
    async evict(resource) {
      for (const { request } of store.holders(resource)) store.forget(resource, request.acquisitionId);
    },
  },
  timing: { ttlMs: 150, slackMs: 150, idleGapMs: 100 },
});
