import { type LockBackend, readOptions } from '@locks/core/backend';
import { AdvisoryBackend, type PostgresAdvisoryCapabilities } from '../advisory/advisory-backend.ts';
import { ADVISORY_TABLE, type PostgresAdvisoryOptions } from '../advisory/options.ts';
import { PostgresLeaseBackend, type PostgresLeaseCapabilities } from '../lease/lease-backend.ts';
import { LEASE_TABLE, type PostgresLeaseOptions } from '../lease/options.ts';
import { type DatabaseSource, readSource } from './database-source.ts';
import { PgDriver } from './pg-driver.ts';

const ELSEWHERE = { pool: 'the first argument', connectionString: 'the first argument' };

// setup: import { createLocks } from '@locks/core'; import { postgresLeaseBackend } from '@locks/postgres'; import { Pool } from 'pg';
// setup: const pool = new Pool(); declare function work(): Promise<void>;
/**
 * Locks as rows of a PostgreSQL database; they expire by its clock. The first call creates the schema.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 * @example
 * ```ts
 * const locks = createLocks(postgresLeaseBackend(pool));
 * await locks.lock('nightly-report').run(work);
 * ```
 */
export function postgresLeaseBackend(
  source: DatabaseSource,
  options?: PostgresLeaseOptions,
): LockBackend<PostgresLeaseCapabilities> {
  const caller = 'postgresLeaseBackend()';
  const driver = new PgDriver(readSource(caller, source));
  return new PostgresLeaseBackend(driver, readOptions(caller, options, LEASE_TABLE, ELSEWHERE), 'network');
}

// setup: import { createLocks } from '@locks/core'; import { postgresAdvisoryBackend } from '@locks/postgres';
// setup: declare function work(): Promise<void>;
/**
 * Locks that live as long as a session with PostgreSQL: advisory locks. One connection holds any number of them, and
 * waiters wait in the server's own queue. The first call connects.
 *
 * @example
 * ```ts
 * const locks = createLocks(postgresAdvisoryBackend('postgres://app@db/shop'));
 * await locks.lock('nightly-report').run(work);
 * ```
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function postgresAdvisoryBackend(
  source: DatabaseSource,
  options: PostgresAdvisoryOptions & { readonly fencing: { readonly schema: string } },
): LockBackend<PostgresAdvisoryCapabilities<'durable'>>;
export function postgresAdvisoryBackend(
  source: DatabaseSource,
  options?: PostgresAdvisoryOptions & { readonly fencing?: undefined },
): LockBackend<PostgresAdvisoryCapabilities<'none'>>;
export function postgresAdvisoryBackend(
  source: DatabaseSource,
  options?: PostgresAdvisoryOptions,
): LockBackend<PostgresAdvisoryCapabilities>;
export function postgresAdvisoryBackend(
  source: DatabaseSource,
  options?: PostgresAdvisoryOptions,
): LockBackend<PostgresAdvisoryCapabilities> {
  const caller = 'postgresAdvisoryBackend()';
  // The pool lends its settings only: a lock that keeps a connection must not take one from the application.
  const driver = new PgDriver(readSource(caller, source));
  return new AdvisoryBackend(driver, readOptions(caller, options, ADVISORY_TABLE, ELSEWHERE));
}
