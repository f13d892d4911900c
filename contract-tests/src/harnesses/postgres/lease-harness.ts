import { defineHarness, type Harness } from '@locks/core/conformance';
import { migrateLeaseSchema, postgresLeaseBackend } from '@locks/postgres';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import pg from 'pg';
import { withAdmin } from '../../administration/postgres.ts';
import { at, serverIn } from '../connections/server-url.ts';
import { cutProxies } from '../connections/cut-proxies.ts';
import { closedWith } from '../connections/shared-clients.ts';
import type { PostgresAddress, PostgresDeployment } from './deployment.ts';

const VARIABLE = 'LOCKS_CONFORMANCE_POSTGRES';
/** The idle gap: a heartbeat that ended 3 s ago, and the next check of those behind. */
const IDLE_GAP_MS = 4_000;
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
      // The import is here because child processes load no more than they need.
      const { deployPostgres } = await import('./deployment.ts');
      const started = await deployPostgres({ pgbouncer });
      deployment = started;
      const version = await withAdmin(started.direct.direct, async (admin) => {
        const { rows } = await admin.query<{ server_version: string }>('SHOW server_version');
        return rows[0]?.server_version.split(' ')[0];
      });
      const { direct: connectionString, schema } = started.direct;
      // One early call opens the connections: dozens of first calls at once would delay their cases.
      await migrateLeaseSchema({ connectionString, schema });
      const opened = openPool(started.proxied.url);
      await Promise.all(Array.from({ length: CONNECTIONS }, () => opened.query('SELECT 1')));
      const pooler = pgbouncer ? `, ${await pgbouncerVersion()}` : '';
      Object.assign(harness, { server: `PostgreSQL ${version}${pooler}` });
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
      cut: async () => cutProxies(deployment?.proxies ?? []),
      wire: {
        servers: () => [serverIn(direct().url)],
        createBackend([proxy]) {
          const address = direct();
          const own = new pg.Pool({
            connectionString: at(address.url, proxy),
            max: 2,
            allowExitOnIdle: true,
          });
          own.on('error', () => undefined);
          const backend = postgresLeaseBackend({
            pool: own,
            schema: address.schema,
            ...(pgbouncer && { listen: { connectionString: address.direct } }),
          });
          return closedWith(backend, () => own.end());
        },
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
    waivers: {
      'steal/stolen-before-it-was-reported': {
        reason: 'a waiter that is stolen from before it heard of its turn may stand behind the next one',
        link: 'docs/backends/postgres.md',
      },
    },
    timing: { idleGapMs: IDLE_GAP_MS, slackMs: 500 },
  });
  return harness;
}

/** `PgBouncer 1.18.0` */
async function pgbouncerVersion(): Promise<string | undefined> {
  const { findServer } = await import('@locks/test-servers');
  const { stdout } = await promisify(execFile)(findServer('pgbouncer'), ['--version']);
  return stdout.split('\n')[0];
}
