import { defineHarness } from '@locks/core/conformance';
import { startProxy } from '@locks/core/conformance/proxy';
import { fairBackend } from './fair-backend.ts';
import { startServer } from './kv-server.ts';

const host = '127.0.0.1';

export default defineHarness({
  module: import.meta.url,
  name: 'fair, on a slow store that counts seconds',
  createBackend: () => fairBackend({ host, port: Number(process.env['SLOW_PORT']), stepMs: 1_000 }),
  async setup() {
    const server = await startServer();
    const proxy = await startProxy({ host, port: server.port });
    proxy.latency(150, { direction: 'toClient' });
    const teardown = async () => {
      await proxy.stop();
      await server.stop();
    };
    return { env: { SLOW_PORT: String(proxy.port) }, teardown };
  },
  timing: {
    ttlMs: 2_000, // well above two round trips, the time of a step
    slackMs: 1_000, // at least three times the answer time of the store; core waits twice that for a release
    idleGapMs: 3_000, // a hand-off that nobody renews, a step of the store, and a check after it
  },
});
