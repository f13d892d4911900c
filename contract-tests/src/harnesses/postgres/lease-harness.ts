import type { LockBackend } from '@locks/core';
import type { Harness } from '@locks/core/conformance';
import { migrateLeaseSchema, postgresLeaseBackend } from '@locks/postgres';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import pg from 'pg';
import { withAdmin } from '../../administration/postgres.ts';
import { at, serverIn } from '../connections/server-url.ts';
import { servedHarness } from '../connections/served-harness.ts';
import { closedWith } from '../connections/shared-clients.ts';
import type { PostgresAddress, PostgresDeployment } from './deployment.ts';

/** The idle gap: a heartbeat that ended 3 s ago, and the next check of those behind. */
const IDLE_GAP_MS = 4_000;
const CONNECTIONS = 16;

export function postgresLeaseHarness(module: string, { pgbouncer = false } = {}): Harness {
  let pool: pg.Pool | undefined;
  // All backends of a process share one, as those of an application would.
  const openPool = (connectionString: string): pg.Pool =>
    (pool ??= new pg.Pool({ connectionString, max: CONNECTIONS, allowExitOnIdle: true }));
  const backendOn = (on: pg.Pool, { schema, direct }: PostgresAddress): LockBackend =>
    postgresLeaseBackend({
      pool: on,
      schema,
      ...(pgbouncer && { listen: { connectionString: direct } }),
    });
  return servedHarness<PostgresAddress, PostgresDeployment>({
    module,
    name: pgbouncer ? 'postgres-lease-pgbouncer' : 'postgres-lease',
    ...(pgbouncer && { topology: 'pgbouncer' }),
    variable: 'LOCKS_CONFORMANCE_POSTGRES',
    start: async () => (await import('./deployment.ts')).deployPostgres({ pgbouncer }),
    async prepare({ direct: { direct: connectionString, schema }, proxied }) {
      const version = await withAdmin(connectionString, async (admin) => {
        const { rows } = await admin.query<{ server_version: string }>('SHOW server_version');
        return rows[0]?.server_version.split(' ')[0];
      });
      // One early call opens the connections: dozens of first calls at once would delay their cases.
      await migrateLeaseSchema({ connectionString, schema });
      const opened = openPool(proxied.url);
      await Promise.all(Array.from({ length: CONNECTIONS }, () => opened.query('SELECT 1')));
      return `PostgreSQL ${version}${pgbouncer ? `, ${await pgbouncerVersion()}` : ''}`;
    },
    createBackend: (address) => backendOn(openPool(address.url), address),
    async end() {
      await pool?.end();
      pool = undefined;
    },
    faults: (direct) => ({
      wire: {
        servers: () => [serverIn(direct().url)],
        createBackend([proxy]) {
          const connectionString = at(direct().url, proxy);
          const own = new pg.Pool({ connectionString, max: 2, allowExitOnIdle: true });
          own.on('error', () => undefined);
          return closedWith(backendOn(own, direct()), () => own.end());
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
    }),
    waivers: {
      'steal/stolen-before-it-was-reported': {
        reason: 'a waiter that is stolen from before it heard of its turn may stand behind the next one',
        link: 'docs/backends/postgres.md',
      },
    },
    timing: { idleGapMs: IDLE_GAP_MS, slackMs: 500 },
  });
}

/** `PgBouncer 1.18.0` */
async function pgbouncerVersion(): Promise<string | undefined> {
  const { findServer } = await import('@locks/test-servers');
  const { stdout } = await promisify(execFile)(findServer('pgbouncer'), ['--version']);
  return stdout.split('\n')[0];
}
