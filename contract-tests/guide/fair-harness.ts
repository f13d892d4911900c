import { defineHarness } from '@locks/core/conformance';
import { fairBackend } from './fair-backend.ts';
import { KvClient } from './kv-client.ts';
import { startServer } from './kv-server.ts';

const host = '127.0.0.1';
const port = (): number => Number(process.env['FAIR_BACKEND_PORT']);

export default defineHarness({
  module: import.meta.url,
  createBackend: () => fairBackend({ host, port: port() }),
  createBackendUnder: 'none',
  async setup() {
    const server = await startServer();
    return { env: { FAIR_BACKEND_PORT: String(server.port) }, teardown: () => server.stop() };
  },
  faults: {
    wire: {
      servers: () => [{ host, port: port() }],
      createBackend: ([proxy]) => fairBackend({ host, port: proxy?.port ?? 0 }),
      replyLength: (bytes) => bytes.indexOf('\n') + 1, // a reply is a line, and names its request
    },
    async evict(resource) {
      const admin = new KvClient(host, port());
      const { revision } = await admin.get(resource);
      await admin.put(resource, null, revision);
      admin.close();
    },
    corrupt: 'none', // nobody else writes to this server
  },
  timing: { ttlMs: 500, slackMs: 800, idleGapMs: 1_200 }, // a hand-off that nobody renews, and a check after it
});
