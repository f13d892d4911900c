import { type LockBackend, readOptions } from '@locks/core/backend';
import type postgres from 'postgres';
import { AdvisoryBackend, type PostgresAdvisoryCapabilities } from '../advisory/advisory-backend.ts';
import { ADVISORY_TABLE, type PostgresAdvisoryOptions } from '../advisory/options.ts';
import { PostgresLeaseBackend, type PostgresLeaseCapabilities } from '../lease/lease-backend.ts';
import { LEASE_TABLE, type PostgresLeaseOptions } from '../lease/options.ts';
import { PostgresJsDriver, readSql } from './postgres-js-driver.ts';

const ELSEWHERE = { sql: 'the first argument' };

// setup: import { createLocks } from '@locks/core'; import { postgresLeaseBackend } from '@locks/postgres/postgres-js'; import postgres from 'postgres';
// setup: const sql = postgres(); declare function work(): Promise<void>;
/**
 * Locks as rows of a PostgreSQL database, by postgres.js; they expire by the clock of the database. The first call creates the
 * schema. Processes that use `pg` share the locks.
 *
 * @param sql - what `postgres()` returned. The backend opens connections of its own with its settings, and never closes it
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 * @example
 * ```ts
 * const locks = createLocks(postgresLeaseBackend(sql));
 * await locks.lock('nightly-report').run(work);
 * ```
 */
export function postgresLeaseBackend(
  sql: postgres.Sql,
  options?: PostgresLeaseOptions,
): LockBackend<PostgresLeaseCapabilities> {
  const caller = 'postgresLeaseBackend()';
  const driver = new PostgresJsDriver(readSql(caller, sql));
  return new PostgresLeaseBackend(driver, readOptions(caller, options, LEASE_TABLE, ELSEWHERE), 'network');
}

// setup: import { createLocks } from '@locks/core'; import { postgresAdvisoryBackend } from '@locks/postgres/postgres-js'; import postgres from 'postgres';
// setup: const sql = postgres(); declare function work(): Promise<void>;
/**
 * Locks that live as long as a session with PostgreSQL, by postgres.js: advisory locks. One connection holds any number of
 * them, and waiters wait in the server's own queue. The first call connects.
 *
 * @param sql - what `postgres()` returned. The backend opens connections of its own with its settings, and never closes it
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 * @example
 * ```ts
 * const locks = createLocks(postgresAdvisoryBackend(sql));
 * await locks.lock('nightly-report').run(work);
 * ```
 */
export function postgresAdvisoryBackend(
  sql: postgres.Sql,
  options: PostgresAdvisoryOptions & { readonly fencing: { readonly schema: string } },
): LockBackend<PostgresAdvisoryCapabilities<'durable'>>;
export function postgresAdvisoryBackend(
  sql: postgres.Sql,
  options?: PostgresAdvisoryOptions & { readonly fencing?: undefined },
): LockBackend<PostgresAdvisoryCapabilities<'none'>>;
export function postgresAdvisoryBackend(
  sql: postgres.Sql,
  options?: PostgresAdvisoryOptions,
): LockBackend<PostgresAdvisoryCapabilities>;
export function postgresAdvisoryBackend(
  sql: postgres.Sql,
  options?: PostgresAdvisoryOptions,
): LockBackend<PostgresAdvisoryCapabilities> {
  const caller = 'postgresAdvisoryBackend()';
  const driver = new PostgresJsDriver(readSql(caller, sql));
  return new AdvisoryBackend(driver, readOptions(caller, options, ADVISORY_TABLE, ELSEWHERE));
}
