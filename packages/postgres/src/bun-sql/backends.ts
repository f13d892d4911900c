import { type LockBackend, type OptionTable, readOptions } from '@locks/core/backend';
import { PostgresLeaseBackend, type PostgresLeaseCapabilities } from '../lease/lease-backend.ts';
import { LEASE_TABLE, type PostgresLeaseOptions } from '../lease/options.ts';
import type { BunSql } from './bun-connection.ts';
import { BunSqlDriver, readBunSql } from './bun-sql-driver.ts';

/** The options of the backend on a lease table by `Bun.SQL`. */
export type BunLeaseOptions = Omit<PostgresLeaseOptions, 'listen'>;

const { schema, autoPrepare } = LEASE_TABLE;
const LEASE_OPTIONS = { schema, autoPrepare } satisfies OptionTable<BunLeaseOptions>;
const ELSEWHERE = { sql: 'the first argument' };

// setup: import { createLocks } from '@locks/core'; import { type BunSql, postgresLeaseBackend } from '@locks/postgres/bun-sql';
// setup: declare const sql: BunSql; declare function work(): Promise<void>;
/**
 * Locks as rows of a PostgreSQL database, by `Bun.SQL`; they expire by the clock of the database. Waiters ask for their turn
 * every 100 ms. Processes that use `pg` or postgres.js, which work on Bun too and are told of their turn, share the locks.
 *
 * @param sql - a `Bun.SQL`. The backend opens connections of its own with its settings, and never closes it
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 * @example
 * ```ts
 * const locks = createLocks(postgresLeaseBackend(sql));
 * await locks.lock('nightly-report').run(work);
 * ```
 */
export function postgresLeaseBackend(
  sql: BunSql,
  options?: BunLeaseOptions,
): LockBackend<PostgresLeaseCapabilities> {
  const caller = 'postgresLeaseBackend()';
  const driver = new BunSqlDriver(readBunSql(caller, sql));
  const settings = readOptions(caller, options, LEASE_OPTIONS, ELSEWHERE);
  return new PostgresLeaseBackend(driver, { ...settings, listen: false }, 'network');
}
