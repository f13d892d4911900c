import { defineHarness } from '@locks/core/conformance';
import { createRecordBackend } from '@locks/record-protocol';
import { HttpRecordStore } from '../fixtures/http-record-store.ts';
import { startRecordServer } from '../fixtures/record-server.ts';

const VARIABLE = 'LOCKS_CONFORMANCE_RECORD_SERVER';
const HOST = '127.0.0.1';

const port = (): number => Number(process.env[VARIABLE]);

/** A fixture: a store of records behind HTTP that tells no time and pushes nothing, for the kernel of `@locks/record-protocol`. */
export default defineHarness({
  module: import.meta.url,
  name: 'record-http',
  server: 'none (in process)',
  createBackend: () => createRecordBackend(new HttpRecordStore(HOST, port())),
  createBackendUnder: (prefix) => createRecordBackend(new HttpRecordStore(HOST, port()), { prefix }),
  async setup() {
    const server = await startRecordServer();
    return { env: { [VARIABLE]: String(server.port) }, teardown: () => server.stop() };
  },
  faults: {
    wire: {
      servers: () => [{ host: HOST, port: port() }],
      createBackend: ([proxy]) => createRecordBackend(new HttpRecordStore(HOST, proxy?.port ?? 0)),
    },
    async corrupt(resource) {
      const body = 'of another program';
      await fetch(`http://${HOST}:${port()}/${encodeURIComponent(`locks/lock/${resource}`)}`, {
        method: 'PUT',
        body,
      });
    },
    async evict(resource) {
      const backend = createRecordBackend(new HttpRecordStore(HOST, port()));
      await backend.forceRelease?.(resource, undefined, { now: () => performance.now(), deadline: Infinity });
      await backend.close();
    },
  },
  timing: { slackMs: 1_000, idleGapMs: 4_200 },
});
