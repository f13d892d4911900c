import type { LockBackend } from '@locks/core/backend';
import { defineHarness, type Harness } from '@locks/core/conformance';
import { advisoryKey } from '@locks/postgres';
import { withAdmin } from '../../administration/postgres.ts';
import { at, serverIn } from '../connections/server-url.ts';

const URL_VARIABLE = 'LOCKS_POSTGRES_ADVISORY_URL';

/** The application name of each backend's connections, by which its session can be found and ended. */
const names = new WeakMap<object, string>();
let backends = 0;

/** The options of the backend, beside its database. */
export const ADVISORY_OPTIONS = { sessionTimeoutMs: 3_000, fencing: { schema: 'locks' } } as const;

/** One private server; every backend has connections of its own. */
export function postgresAdvisoryHarness(
  module: string,
  name: string,
  backendOn: (connectionString: string) => LockBackend,
): Harness {
  const harness: Harness = defineHarness({
    module,
    name,
    async setup() {
      // The import is here because child processes load no more than they need.
      const { startPostgres } = await import('@locks/test-servers');
      const server = await startPostgres();
      const [row] = await server.query('SHOW server_version');
      Object.assign(harness, { server: `PostgreSQL ${row?.['server_version']?.split(' ')[0]}` });
      return { env: { [URL_VARIABLE]: server.url }, teardown: () => server.stop() };
    },
    createBackend() {
      backends += 1;
      const name = `conformance-${process.pid}-${backends}`;
      const backend = backendOn(`${process.env[URL_VARIABLE]}?application_name=${name}`);
      // A wrapper of a case passes on this very object.
      names.set(backend.capabilities, name);
      return backend;
    },
    createBackendUnder: 'none',
    faults: {
      // The server keeps the locks in its memory.
      corrupt: 'none',
      wire: {
        servers: () => [serverIn(process.env[URL_VARIABLE] as string)],
        createBackend: ([address]) => backendOn(at(process.env[URL_VARIABLE] as string, address)),
      },
      async evict(resource) {
        const bits = BigInt.asUintN(64, advisoryKey(resource));
        await administer(
          `SELECT pg_terminate_backend(pid) FROM pg_locks
           WHERE locktype = 'advisory' AND granted AND classid = $1::oid AND objid = $2::oid`,
          [String(bits >> 32n), String(bits & 0xffff_ffffn)],
        );
      },
      async endSession(backend: LockBackend) {
        await administer(
          'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1',
          [names.get(backend.capabilities)],
        );
      },
    },
    // A granted process that stands still is passed over after two seconds.
    timing: { ttlMs: 300, slackMs: 400, idleGapMs: 2_100 },
  });
  return harness;
}

function administer(text: string, values: unknown[]): Promise<unknown> {
  return withAdmin(process.env[URL_VARIABLE] as string, (admin) => admin.query(text, values));
}
