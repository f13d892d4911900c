import { readOptions } from '@locks/core/backend';
import type { Diagnosis } from '@locks/core/doctor';
import type postgres from 'postgres';
import { examineBy } from '../examination.ts';
import { LEASE_TABLE, type PostgresLeaseOptions } from '../lease/options.ts';
import { PostgresJsDriver, readSql } from './postgres-js-driver.ts';

// setup: import { examinePostgres } from '@locks/postgres/postgres-js/doctor'; import postgres from 'postgres';
/**
 * Examines the server of the locks, and what its role may do: version, durability, replication, connections, a pooler in between. Connects
 * by itself, with the settings of the instance. No table is made.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; errors of postgres.js as they are
 * @example
 * ```ts
 * const { findings } = await examinePostgres(postgres());
 * for (const { severity, id, what } of findings) console.warn(severity, id, what);
 * ```
 */
export async function examinePostgres(sql: postgres.Sql, options?: PostgresLeaseOptions): Promise<Diagnosis> {
  const caller = 'examinePostgres()';
  const { schema } = readOptions(caller, options, LEASE_TABLE);
  return await examineBy(new PostgresJsDriver(readSql(caller, sql)), schema);
}
