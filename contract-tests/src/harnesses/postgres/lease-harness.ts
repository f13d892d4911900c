import { createLocks } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import type { Harness } from '@locks/core/conformance';
import { postgresLeaseBackend } from '@locks/postgres';
import { postgresLeaseBackend as postgresJsLeaseBackend } from '@locks/postgres/postgres-js';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import pg from 'pg';
import postgres from 'postgres';
import { withAdmin } from '../../administration/postgres.ts';
import { at, serverIn } from '../connections/server-url.ts';
import { servedHarness } from '../connections/served-harness.ts';
import { closedWith } from '../connections/shared-clients.ts';
import type { PostgresAddress, PostgresDeployment } from './deployment.ts';

/** The idle gap: a heartbeat that ended 3 s ago, and the next check of those behind. */
const IDLE_GAP_MS = 4_000;
const CONNECTIONS = 16;

/** A client of a library, and backends on it. */
interface LeaseClient {
  backend(address: PostgresAddress): LockBackend;
  /** Opens the connections: dozens of first calls at once would delay their cases. */
  open(): Promise<unknown>;
  end(): Promise<void>;
}

type Library = (url: string, connections: number) => LeaseClient;

const onPg: Library = (connectionString, max) => {
  const pool = new pg.Pool({ connectionString, max, allowExitOnIdle: true });
  pool.on('error', () => undefined);
  return {
    backend: ({ schema, url, direct }) =>
      postgresLeaseBackend(pool, { schema, ...(url !== direct && { listen: { url: direct } }) }),
    open: () => Promise.all(Array.from({ length: max }, () => pool.query('SELECT 1'))),
    end: () => pool.end(),
  };
};

/** The backends have connections of their own. */
export const onPostgresJs: Library = (url, max) => {
  const sql = postgres(url, { max });
  return {
    backend: ({ schema }) => postgresJsLeaseBackend(sql, { schema }),
    open: async () => undefined,
    end: () => sql.end(),
  };
};

export function postgresLeaseHarness(
  module: string,
  { name = 'postgres-lease', library = onPg, pgbouncer = false } = {},
): Harness {
  let client: LeaseClient | undefined;
  // All backends of a process share one, as those of an application would.
  const openClient = (url: string): LeaseClient => (client ??= library(url, CONNECTIONS));
  return servedHarness<PostgresAddress, PostgresDeployment>({
    module,
    name,
    ...(pgbouncer && { topology: 'pgbouncer' }),
    variable: 'LOCKS_CONFORMANCE_POSTGRES',
    start: async () => (await import('./deployment.ts')).deployPostgres({ pgbouncer }),
    async prepare({ direct: { direct: connectionString, schema }, proxied }) {
      const version = await withAdmin(connectionString, async (admin) => {
        const { rows } = await admin.query<{ server_version: string }>('SHOW server_version');
        return rows[0]?.server_version.split(' ')[0];
      });
      await using locks = createLocks(postgresLeaseBackend(connectionString, { schema }));
      await locks.prepare();
      await openClient(proxied.url).open();
      return `PostgreSQL ${version}${pgbouncer ? `, ${await pgbouncerVersion()}` : ''}`;
    },
    createBackend: (address) => openClient(address.url).backend(address),
    async end() {
      await client?.end();
      client = undefined;
    },
    faults: (direct) => ({
      // The columns have types and constraints.
      corrupt: 'none',
      wire: {
        servers: () => [serverIn(direct().url)],
        createBackend([proxy]) {
          const own = library(at(direct().url, proxy), 2);
          return closedWith(own.backend(direct()), () => own.end());
        },
      },
      // The backend has connections of its own on postgres.js, and lives without the instance that it was given.
      ...(library === onPg && {
        async onOwnClient() {
          const own = library(direct().url, 2);
          return { backend: own.backend(direct()), closeClient: () => own.end() };
        },
      }),
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
