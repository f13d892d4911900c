import { defineHarness } from '@locks/core/conformance';
import { startTcpStore } from '../fixtures/tcp-store.ts';
import { TcpBackend } from '../fixtures/tcp-backend.ts';

const VARIABLE = 'LOCKS_CONFORMANCE_TCP_STORE';
const HOST = '127.0.0.1';

const port = (): number => Number(process.env[VARIABLE]);

/** A fixture: the memory store behind TCP, which tests the cases about faults on the wire. */
export default defineHarness({
  module: import.meta.url,
  name: 'memory-tcp',
  server: 'none (in process)',
  createBackendUnder: 'none',
  createBackend: () => new TcpBackend(HOST, port()),
  async setup() {
    const store = await startTcpStore();
    return { env: { [VARIABLE]: String(store.port) }, teardown: () => store.stop() };
  },
  faults: {
    corrupt: 'none',
    wire: {
      servers: () => [{ host: HOST, port: port() }],
      createBackend: ([proxy]) => new TcpBackend(HOST, proxy?.port ?? 0),
      replyLength: (bytes) => bytes.indexOf('\n') + 1,
    },
    async evict(resource) {
      const backend = new TcpBackend(HOST, port());
      await backend.forceRelease(resource, undefined);
      await backend.close();
    },
  },
  timing: { ttlMs: 400, slackMs: 400, idleGapMs: 300 },
});
