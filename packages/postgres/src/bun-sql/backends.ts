import type { LockBackend } from '@locks/core';
import { type OptionTable, readOptions } from '@locks/core/backend';
import { PostgresLeaseBackend, type PostgresLeaseCapabilities } from '../lease/lease-backend.ts';
import { LEASE_TABLE, type PostgresLeaseSettings, SCHEMA_TABLE } from '../lease/options.ts';
import { migrateBy } from '../lease/schema.ts';
import type { BunSql } from './bun-connection.ts';
import { BunSqlDriver, readBunSql } from './bun-sql-driver.ts';

/** The database: a client of Bun. */
export interface BunSqlSource {
  /** A `Bun.SQL`. The backend opens connections of its own with its settings, and never closes it. */
  readonly sql: BunSql;
}

/** The options of the backend on a lease table by `Bun.SQL`. */
export type BunLeaseOptions = BunSqlSource & Omit<PostgresLeaseSettings, 'listen'>;

const SOURCE_TABLE = { sql: readBunSql } satisfies OptionTable<BunSqlSource>;
const { schema, migrate: mayMigrate } = LEASE_TABLE;
const LEASE_OPTIONS = {
  ...SOURCE_TABLE,
  schema,
  migrate: mayMigrate,
} satisfies OptionTable<BunLeaseOptions>;

// setup: import { createLocks } from '@locks/core'; import { type BunSql, postgresLeaseBackend } from '@locks/postgres/bun-sql';
// setup: declare const sql: BunSql; declare function work(): Promise<void>;
/**
 * Locks as rows of a PostgreSQL database, by `Bun.SQL`; they expire by the clock of the database. Waiters ask for their turn
 * every 100 ms. Processes that use `pg` or postgres.js, which work on Bun too and are told of their turn, share the locks.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 * @example
 * ```ts
 * const locks = createLocks(postgresLeaseBackend({ sql }));
 * await locks.lock('nightly-report').run(work);
 * ```
 */
export function postgresLeaseBackend(options: BunLeaseOptions): LockBackend<PostgresLeaseCapabilities> {
  const { sql, ...settings } = readOptions('postgresLeaseBackend()', options, LEASE_OPTIONS);
  return new PostgresLeaseBackend(new BunSqlDriver(sql), { ...settings, listen: false }, 'network');
}

// setup: import { type BunSql, migrateLeaseSchema } from '@locks/postgres/bun-sql';
// setup: declare const sql: BunSql;
/**
 * Creates the schema of `postgresLeaseBackend`, or brings it up to date. Any number of processes may call this at the same
 * time, and again. The role needs `CREATE` on the database, or on the schema if the schema exists.
 *
 * @throws PostgresSchemaError `NEWER_SCHEMA`, `NO_PRIVILEGE`
 * @example
 * ```ts
 * await migrateLeaseSchema({ sql, schema: 'locks' });
 * ```
 */
export async function migrateLeaseSchema(
  options: BunSqlSource & { readonly schema?: string },
): Promise<void> {
  const table = { ...SOURCE_TABLE, ...SCHEMA_TABLE };
  const read = readOptions('migrateLeaseSchema()', options, table);
  await migrateBy(new BunSqlDriver(read.sql), read.schema);
}
