import type { LockBackend } from '@locks/core';
import { defineHarness } from '@locks/core/conformance';
import { advisoryKey, postgresAdvisoryBackend } from '@locks/postgres';
import pg from 'pg';

const URL_VARIABLE = 'LOCKS_POSTGRES_ADVISORY_URL';

/** Each backend names its connections, so that its session can be found and ended. */
const names = new WeakMap<object, string>();
let backends = 0;

/** One private server; every backend has connections of its own. */
export default defineHarness({
  module: import.meta.url,
  name: 'postgres-advisory',
  server: 'PostgreSQL 15',
  async setup() {
    // Only here: child processes load no more than they need.
    const { startPostgres } = await import('@locks/test-servers');
    const server = await startPostgres();
    return { env: { [URL_VARIABLE]: server.url }, teardown: () => server.stop() };
  },
  createBackend() {
    backends += 1;
    const name = `conformance-${process.pid}-${backends}`;
    const backend = postgresAdvisoryBackend({
      connectionString: `${process.env[URL_VARIABLE]}?application_name=${name}`,
      sessionTimeoutMs: 3_000,
      fencing: { schema: 'locks' },
    });
    // Whatever a case puts around a backend, it passes on this very object.
    names.set(backend.capabilities, name);
    return backend;
  },
  faults: {
    async evict(resource) {
      const bits = BigInt.asUintN(64, advisoryKey(resource));
      await administer(
        `SELECT pg_terminate_backend(pid) FROM pg_locks
         WHERE locktype = 'advisory' AND granted AND classid = $1::oid AND objid = $2::oid`,
        [String(bits >> 32n), String(bits & 0xffff_ffffn)],
      );
    },
    async endSession(backend: LockBackend) {
      await administer('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1', [
        names.get(backend.capabilities),
      ]);
    },
  },
  // A granted process that stands still is passed over after two seconds.
  timing: { ttlMs: 300, slackMs: 400, idleGapMs: 2_100 },
});

async function administer(text: string, values: unknown[]): Promise<void> {
  const client = new pg.Client({ connectionString: process.env[URL_VARIABLE] });
  await client.connect();
  try {
    await client.query(text, values);
  } finally {
    await client.end();
  }
}
