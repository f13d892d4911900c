import { defineHarness, type Harness } from '@locks/core/conformance';
import { migrateLeaseSchema, postgresLeaseBackend } from '@locks/postgres';
import pg from 'pg';
import { withAdmin } from './admin.ts';
import type { PostgresAddress, PostgresDeployment } from './deployment.ts';

const VARIABLE = 'LOCKS_CONFORMANCE_POSTGRES';
/** A claim time that lapses, and the look after it. */
const IDLE_GAP_MS = 3_000;
const CONNECTIONS = 16;

/** This process speaks through proxies, child processes directly. */
export function postgresLeaseHarness(module: string, { pgbouncer = false } = {}): Harness {
  let deployment: PostgresDeployment | undefined;
  let pool: pg.Pool | undefined;
  // All backends of a process share one, as those of an application would.
  const openPool = (connectionString: string): pg.Pool =>
    (pool ??= new pg.Pool({ connectionString, max: CONNECTIONS, allowExitOnIdle: true }));
  const direct = (): PostgresAddress => JSON.parse(process.env[VARIABLE] ?? 'null') as PostgresAddress;
  const harness = defineHarness({
    module,
    name: pgbouncer ? 'postgres-lease-pgbouncer' : 'postgres-lease',
    ...(pgbouncer && { topology: 'pgbouncer' }),
    createBackend() {
      const address = deployment?.proxied ?? direct();
      return postgresLeaseBackend({
        pool: openPool(address.url),
        schema: address.schema,
        ...(pgbouncer && { listen: { connectionString: address.direct } }),
      });
    },
    async setup() {
      // Only here: child processes load no more than they need.
      const { deployPostgres } = await import('./deployment.ts');
      const started = await deployPostgres({ pgbouncer });
      deployment = started;
      const version = await withAdmin(started.direct.direct, async (admin) => {
        const { rows } = await admin.query<{ server_version: string }>('SHOW server_version');
        return rows[0]?.server_version.split(' ')[0];
      });
      const { direct: connectionString, schema } = started.direct;
      // Dozens of first calls at once would hold up the cases that they belong to.
      await migrateLeaseSchema({ connectionString, schema });
      const opened = openPool(started.proxied.url);
      await Promise.all(Array.from({ length: CONNECTIONS }, () => opened.query('SELECT 1')));
      Object.assign(harness, { server: `PostgreSQL ${version}` });
      return {
        env: { [VARIABLE]: JSON.stringify(started.direct) },
        teardown: async () => {
          deployment = undefined;
          await pool?.end();
          pool = undefined;
          await started.stop();
        },
      };
    },
    faults: {
      async cut() {
        const proxies = deployment?.proxies ?? [];
        for (const proxy of proxies) {
          proxy.refuse();
          proxy.cut();
        }
        return async () => {
          await Promise.all(proxies.map((proxy) => proxy.heal()));
        };
      },
      async evict(resource) {
        const { schema, direct: url } = direct();
        await withAdmin(url, async (admin) => {
          const name = Buffer.from(resource);
          await admin.query(`DELETE FROM ${schema}.shares WHERE name = $1`, [name]);
          await admin.query(`DELETE FROM ${schema}.locks WHERE name = $1`, [name]);
        });
      },
    },
    timing: { idleGapMs: IDLE_GAP_MS, slackMs: 500 },
  });
  return harness;
}
