import type { LockBackend } from '@locks/core';
import { type OptionTable, readOptions } from '@locks/core/backend';
import type postgres from 'postgres';
import { AdvisoryBackend, type PostgresAdvisoryCapabilities } from '../advisory/advisory-backend.ts';
import { ADVISORY_TABLE, type PostgresAdvisorySettings } from '../advisory/options.ts';
import { PostgresLeaseBackend, type PostgresLeaseCapabilities } from '../lease/lease-backend.ts';
import { LEASE_TABLE, type PostgresLeaseSettings, SCHEMA_TABLE } from '../lease/options.ts';
import { migrateBy } from '../lease/schema.ts';
import { PostgresJsDriver, readSql } from './postgres-js-driver.ts';

/** The database: an instance of postgres.js. */
export interface SqlSource {
  /** What `postgres()` returned. The backend opens connections of its own with its settings, and never closes it. */
  readonly sql: postgres.Sql;
}

/** The options of the backend on a lease table: the database, and the settings of the backend. */
export type PostgresLeaseOptions = SqlSource & PostgresLeaseSettings;

/** The options of `postgresAdvisoryBackend`: the database, and the settings of the backend. */
export type PostgresAdvisoryOptions = SqlSource & PostgresAdvisorySettings;

const SOURCE_TABLE = { sql: readSql } satisfies OptionTable<SqlSource>;
const LEASE_OPTIONS = { ...SOURCE_TABLE, ...LEASE_TABLE } satisfies OptionTable<PostgresLeaseOptions>;
const ADVISORY_OPTIONS = {
  ...SOURCE_TABLE,
  ...ADVISORY_TABLE,
} satisfies OptionTable<PostgresAdvisoryOptions>;

// setup: import { createLocks } from '@locks/core'; import { postgresLeaseBackend } from '@locks/postgres/postgres-js'; import postgres from 'postgres';
// setup: const sql = postgres(); declare function work(): Promise<void>;
/**
 * Locks as rows of a PostgreSQL database, by postgres.js; they expire by the clock of the database. The first call creates the
 * schema. Processes that use `pg` share the locks.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 * @example
 * ```ts
 * const locks = createLocks(postgresLeaseBackend({ sql }));
 * await locks.lock('nightly-report').run(work);
 * ```
 */
export function postgresLeaseBackend(options: PostgresLeaseOptions): LockBackend<PostgresLeaseCapabilities> {
  const { sql, ...settings } = readOptions('postgresLeaseBackend()', options, LEASE_OPTIONS);
  return new PostgresLeaseBackend(new PostgresJsDriver(sql), settings, 'network');
}

// setup: import { createLocks } from '@locks/core'; import { postgresAdvisoryBackend } from '@locks/postgres/postgres-js'; import postgres from 'postgres';
// setup: const sql = postgres(); declare function work(): Promise<void>;
/**
 * Locks that live as long as a session with PostgreSQL, by postgres.js: advisory locks. One connection holds any number of
 * them, and waiters wait in the server's own queue. The first call connects.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 * @example
 * ```ts
 * const locks = createLocks(postgresAdvisoryBackend({ sql }));
 * await locks.lock('nightly-report').run(work);
 * ```
 */
export function postgresAdvisoryBackend(
  options: PostgresAdvisoryOptions & { readonly fencing: { readonly schema: string } },
): LockBackend<PostgresAdvisoryCapabilities<'durable'>>;
export function postgresAdvisoryBackend(
  options: PostgresAdvisoryOptions & { readonly fencing?: undefined },
): LockBackend<PostgresAdvisoryCapabilities<'none'>>;
export function postgresAdvisoryBackend(
  options: PostgresAdvisoryOptions,
): LockBackend<PostgresAdvisoryCapabilities>;
export function postgresAdvisoryBackend(
  options: PostgresAdvisoryOptions,
): LockBackend<PostgresAdvisoryCapabilities> {
  const { sql, ...settings } = readOptions('postgresAdvisoryBackend()', options, ADVISORY_OPTIONS);
  return new AdvisoryBackend(new PostgresJsDriver(sql), settings);
}

// setup: import { migrateLeaseSchema } from '@locks/postgres/postgres-js'; import postgres from 'postgres';
/**
 * Creates the schema of `postgresLeaseBackend`, or brings it up to date. Any number of processes may call this at the same
 * time, and again. The role needs `CREATE` on the database, or on the schema if the schema exists.
 *
 * @throws PostgresSchemaError `NEWER_SCHEMA`, `NO_PRIVILEGE`
 * @example
 * ```ts
 * await migrateLeaseSchema({ sql: postgres('postgres://owner@db.example.com/shop'), schema: 'locks' });
 * ```
 */
export async function migrateLeaseSchema(options: SqlSource & { readonly schema?: string }): Promise<void> {
  const table = { ...SOURCE_TABLE, ...SCHEMA_TABLE };
  const { sql, schema } = readOptions('migrateLeaseSchema()', options, table);
  await migrateBy(new PostgresJsDriver(sql), schema);
}
