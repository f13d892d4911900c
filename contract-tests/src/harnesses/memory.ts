import { defineHarness, delegate } from '@locks/core/conformance';
import { memoryBackend, MemoryStore } from '@locks/memory';

const store = new MemoryStore();

/** The reference backend: every client of the process shares one store. */
export default defineHarness({
  module: import.meta.url,
  name: 'memory',
  server: 'none (in process)',
  createBackendUnder: 'none',
  createBackend: () => memoryBackend(store),
  faults: {
    corrupt: 'none',
    // The store has no client: this one stands for those of other stores.
    async onOwnClient() {
      let isClosed = false;
      const backend = memoryBackend(store);
      const ifOpen = async <T>(call: () => Promise<T>): Promise<T> => {
        if (isClosed) throw new Error('the client is closed');
        return call();
      };
      return {
        backend: delegate(backend, {
          attempt: (...args) => ifOpen(() => backend.attempt(...args)),
          abandon: (...args) => ifOpen(() => backend.abandon(...args)),
          renew: (...args) => ifOpen(() => backend.renew(...args)),
          release: (...args) => ifOpen(() => backend.release(...args)),
          inspect: (...args) => ifOpen(() => backend.inspect(...args)),
          isClientClosed: () => isClosed,
        }),
        closeClient: async () => void (isClosed = true),
      };
    },
    async evict(resource) {
      store.forceRelease(resource, undefined);
    },
  },
  timing: { ttlMs: 150, slackMs: 150, idleGapMs: 100 },
});
