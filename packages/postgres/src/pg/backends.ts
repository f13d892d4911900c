import { type OptionTable, readOptions } from '@locks/core/backend';
import type { LockBackend } from '@locks/core';
import { AdvisoryBackend, type PostgresAdvisoryCapabilities } from '../advisory/advisory-backend.ts';
import { ADVISORY_TABLE, type PostgresAdvisorySettings } from '../advisory/options.ts';
import { PostgresLeaseBackend, type PostgresLeaseCapabilities } from '../lease/lease-backend.ts';
import { LEASE_TABLE, type PostgresLeaseSettings, SCHEMA_TABLE } from '../lease/options.ts';
import { migrateBy } from '../lease/schema.ts';
import { type DatabaseSource, SOURCE_TABLE, sourceOf } from './database-source.ts';
import { PgDriver } from './pg-driver.ts';

/** The options of the backend on a lease table: the database, and the settings of the backend. */
export type PostgresLeaseOptions = DatabaseSource & PostgresLeaseSettings;

/** The options of `postgresAdvisoryBackend`: the database, and the settings of the backend. */
export type PostgresAdvisoryOptions = DatabaseSource & PostgresAdvisorySettings;

const LEASE_OPTIONS = { ...SOURCE_TABLE, ...LEASE_TABLE } satisfies OptionTable<PostgresLeaseOptions>;
const ADVISORY_OPTIONS = {
  ...SOURCE_TABLE,
  ...ADVISORY_TABLE,
} satisfies OptionTable<PostgresAdvisoryOptions>;

// setup: import { createLocks } from '@locks/core'; import { postgresLeaseBackend } from '@locks/postgres'; import { Pool } from 'pg';
// setup: const pool = new Pool(); declare function work(): Promise<void>;
/**
 * Locks as rows of a PostgreSQL database; they expire by its clock. The first call creates the schema.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 * @example
 * ```ts
 * const locks = createLocks(postgresLeaseBackend({ pool }));
 * await locks.lock('nightly-report').run(work);
 * ```
 */
export function postgresLeaseBackend(options: PostgresLeaseOptions): LockBackend<PostgresLeaseCapabilities> {
  const caller = 'postgresLeaseBackend()';
  const { pool, connectionString, ...settings } = readOptions(caller, options, LEASE_OPTIONS);
  return new PostgresLeaseBackend(
    new PgDriver(sourceOf(caller, { pool, connectionString })),
    settings,
    'network',
  );
}

// setup: import { createLocks } from '@locks/core'; import { postgresAdvisoryBackend } from '@locks/postgres';
// setup: declare function work(): Promise<void>;
/**
 * Locks that live as long as a session with PostgreSQL: advisory locks. One connection holds any number of them, and
 * waiters wait in the server's own queue. The first call connects.
 *
 * @example
 * ```ts
 * const locks = createLocks(postgresAdvisoryBackend({ connectionString: 'postgres://app@db/shop' }));
 * await locks.lock('nightly-report').run(work);
 * ```
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
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
  const caller = 'postgresAdvisoryBackend()';
  const { pool, connectionString, ...settings } = readOptions(caller, options, ADVISORY_OPTIONS);
  // The pool lends its settings only: a lock that keeps a connection must not take one from the application.
  return new AdvisoryBackend(new PgDriver(sourceOf(caller, { pool, connectionString })), settings);
}

// setup: import { migrateLeaseSchema } from '@locks/postgres';
/**
 * Creates the schema of `postgresLeaseBackend`, or brings it up to date. Any number of processes may call this at the same
 * time, and again. The role needs `CREATE` on the database, or on the schema if the schema exists.
 *
 * @throws PostgresSchemaError `NEWER_SCHEMA`, `NO_PRIVILEGE`
 * @example
 * ```ts
 * await migrateLeaseSchema({ connectionString: 'postgres://owner@db.example.com/shop', schema: 'locks' });
 * ```
 */
export async function migrateLeaseSchema(
  options: DatabaseSource & { readonly schema?: string },
): Promise<void> {
  const caller = 'migrateLeaseSchema()';
  const { schema, ...source } = readOptions(caller, options, { ...SOURCE_TABLE, ...SCHEMA_TABLE });
  await migrateBy(new PgDriver(sourceOf(caller, source)), schema);
}
