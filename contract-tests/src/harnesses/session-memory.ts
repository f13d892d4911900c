import { defineHarness } from '@locks/core/conformance';
import { endSession, SessionBackend, SessionStore } from '../session-memory/session-backend.ts';

const store = new SessionStore();

/** A fixture: the memory backend with tenure `session`, to prove the cases about sessions. */
export default defineHarness({
  module: import.meta.url,
  name: 'session-memory',
  server: 'none (in process)',
  createBackend: () => new SessionBackend(store),
  faults: {
    endSession,
    async evict(resource) {
      for (const { request } of store.memory.holders(resource)) {
        store.memory.forget(resource, request.acquisitionId);
      }
    },
  },
  timing: { ttlMs: 150, slackMs: 150, idleGapMs: 100 },
});
