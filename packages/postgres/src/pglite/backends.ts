import type { PGliteInterface } from '@electric-sql/pglite';
import type { LockBackend } from '@locks/core';
import { type OptionTable, readOptions } from '@locks/core/backend';
import { PostgresLeaseBackend, type PostgresLeaseCapabilities } from '../lease/lease-backend.ts';
import { LEASE_TABLE, type PostgresLeaseSettings, SCHEMA_TABLE } from '../lease/options.ts';
import { migrateBy } from '../lease/schema.ts';
import { PgliteDriver, readDatabase } from './pglite-driver.ts';

/** The database. */
export interface PgliteSource {
  /** Your PGlite. The backend shares its one session, and never closes it. */
  readonly pglite: PGliteInterface;
}

/** The options of the backend on a lease table in PGlite. */
export type PgliteLeaseOptions = PgliteSource & Omit<PostgresLeaseSettings, 'listen'>;

/** The type of the capabilities of the backend on PGlite. */
export type PgliteLeaseCapabilities = PostgresLeaseCapabilities<'process'>;

const SOURCE_TABLE = { pglite: readDatabase } satisfies OptionTable<PgliteSource>;
const { schema, migrate: mayMigrate } = LEASE_TABLE;
const LEASE_OPTIONS = {
  ...SOURCE_TABLE,
  schema,
  migrate: mayMigrate,
} satisfies OptionTable<PgliteLeaseOptions>;

// setup: import { PGlite } from '@electric-sql/pglite'; import { createLocks } from '@locks/core'; import { postgresLeaseBackend } from '@locks/postgres/pglite';
// setup: declare function work(): Promise<void>;
/**
 * Locks as rows of a PGlite, for tests and for applications of one process. Its one session serves everybody, so acquire
 * outside of transactions: inside of one, an acquire would wait for the end of the transaction. Waiters of another backend on
 * the same database take their turn within 100 ms.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 * @example
 * ```ts
 * const pglite = new PGlite();
 * const locks = createLocks(postgresLeaseBackend({ pglite }));
 * await locks.lock('nightly-report').run(work);
 * ```
 */
export function postgresLeaseBackend(options: PgliteLeaseOptions): LockBackend<PgliteLeaseCapabilities> {
  const { pglite, ...settings } = readOptions('postgresLeaseBackend()', options, LEASE_OPTIONS);
  return new PostgresLeaseBackend(new PgliteDriver(pglite), { ...settings, listen: false }, 'process');
}

// setup: import { PGlite } from '@electric-sql/pglite'; import { migrateLeaseSchema } from '@locks/postgres/pglite';
/**
 * Creates the schema of `postgresLeaseBackend`, or brings it up to date.
 *
 * @throws PostgresSchemaError `NEWER_SCHEMA`
 * @example
 * ```ts
 * await migrateLeaseSchema({ pglite: new PGlite(), schema: 'locks' });
 * ```
 */
export async function migrateLeaseSchema(
  options: PgliteSource & { readonly schema?: string },
): Promise<void> {
  const table = { ...SOURCE_TABLE, ...SCHEMA_TABLE };
  const read = readOptions('migrateLeaseSchema()', options, table);
  await migrateBy(new PgliteDriver(read.pglite), read.schema);
}
