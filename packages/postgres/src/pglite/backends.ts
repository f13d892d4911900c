import type { PGliteInterface } from '@electric-sql/pglite';
import { type LockBackend, type OptionTable, readOptions } from '@locks/core/backend';
import { PostgresLeaseBackend, type PostgresLeaseCapabilities } from '../lease/lease-backend.ts';
import { LEASE_TABLE, type PostgresLeaseOptions } from '../lease/options.ts';
import { PgliteDriver, readDatabase } from './pglite-driver.ts';

/** The options of the backend on a lease table in PGlite. */
export type PgliteLeaseOptions = Omit<PostgresLeaseOptions, 'listen'>;

/** The type of the capabilities of the backend on PGlite. */
export type PgliteLeaseCapabilities = PostgresLeaseCapabilities<'process'>;

const { schema, autoPrepare } = LEASE_TABLE;
const LEASE_OPTIONS = { schema, autoPrepare } satisfies OptionTable<PgliteLeaseOptions>;
const ELSEWHERE = { pglite: 'the first argument' };

// setup: import { PGlite } from '@electric-sql/pglite'; import { createLocks } from '@locks/core'; import { postgresLeaseBackend } from '@locks/postgres/pglite';
// setup: declare function work(): Promise<void>;
/**
 * Locks as rows of a PGlite, for tests and for applications of one process. Its one session serves everybody, so acquire
 * outside of transactions: inside of one, an acquire would wait for the end of the transaction. Waiters of another backend on
 * the same database take their turn within 100 ms.
 *
 * @param pglite - your PGlite. The backend shares its one session, and never closes it
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 * @example
 * ```ts
 * const pglite = new PGlite();
 * const locks = createLocks(postgresLeaseBackend(pglite));
 * await locks.lock('nightly-report').run(work);
 * ```
 */
export function postgresLeaseBackend(
  pglite: PGliteInterface,
  options?: PgliteLeaseOptions,
): LockBackend<PgliteLeaseCapabilities> {
  const caller = 'postgresLeaseBackend()';
  const driver = new PgliteDriver(readDatabase(caller, pglite));
  const settings = readOptions(caller, options, LEASE_OPTIONS, ELSEWHERE);
  return new PostgresLeaseBackend(driver, { ...settings, listen: false }, 'process');
}
