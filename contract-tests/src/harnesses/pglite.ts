import { PGlite } from '@electric-sql/pglite';
import { defineHarness } from '@locks/core/conformance';
import { postgresLeaseBackend } from '@locks/postgres/pglite';
import { closedWith } from './connections/shared-clients.ts';

/** All backends share one database, as those of an application would. */
let db: PGlite | undefined;

export default defineHarness({
  module: import.meta.url,
  name: 'pglite',
  server: 'PGlite 0.5',
  async setup() {
    db = await PGlite.create();
    return { env: {}, teardown: async () => db?.close() };
  },
  createBackendUnder: 'none',
  createBackend() {
    if (db !== undefined) return postgresLeaseBackend(db);
    // A child process. A PGlite that was written to keeps its process alive for 10 s, unless it is closed.
    const own = new PGlite();
    return closedWith(postgresLeaseBackend(own), () => own.close());
  },
  faults: {
    corrupt: 'none',
    async onOwnClient() {
      const own = await PGlite.create();
      return { backend: postgresLeaseBackend(own), closeClient: () => own.close() };
    },
    async evict(resource) {
      const name = Buffer.from(resource);
      await db?.query('DELETE FROM locks.shares WHERE name = $1', [name]);
      await db?.query('DELETE FROM locks.locks WHERE name = $1', [name]);
    },
  },
  timing: { ttlMs: 300, slackMs: 400, idleGapMs: 4_000 },
});
