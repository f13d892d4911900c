import { readOptions } from '@locks/core/backend';
import type { Diagnosis } from '@locks/core/doctor';
import { examineBy } from './examination.ts';
import { LEASE_TABLE, type PostgresLeaseOptions } from './lease/options.ts';
import { type DatabaseSource, readSource } from './pg/database-source.ts';
import { PgDriver } from './pg/pg-driver.ts';

// setup: import { examinePostgres } from '@locks/postgres/doctor'; import { Pool } from 'pg';
/**
 * Examines the server of the locks, and what its role may do: version, durability, replication, connections, a pooler in between. Connects
 * by itself, with the settings of the pool. No table is made.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; errors of pg as they are
 * @example
 * ```ts
 * const { findings } = await examinePostgres(new Pool());
 * for (const { severity, id, what } of findings) console.warn(severity, id, what);
 * ```
 */
export async function examinePostgres(
  source: DatabaseSource,
  options?: PostgresLeaseOptions,
): Promise<Diagnosis> {
  const caller = 'examinePostgres()';
  const { schema } = readOptions(caller, options, LEASE_TABLE);
  return await examineBy(new PgDriver(readSource(caller, source)), schema);
}
