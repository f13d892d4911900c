import type { BackendCapabilities, LockBackend } from '@locks/core/backend';
import { createTableBackend } from '@locks/record-protocol/table';
import type { Pool } from 'mysql2';
import { Connections } from './connections.ts';
import { MysqlStatements } from './mysql-statements.ts';
import { MysqlTable } from './mysql-table.ts';
import { checkOptions, type MysqlBackendOptions, type MysqlPool } from './options.ts';
import { OwnPool } from './own-pool.ts';
import { Schema } from './schema.ts';
import { tablesOf } from './tables.ts';

const capabilities = {
  tenure: 'lease',
  renewal: 'any-client',
  reach: 'network',
  modes: ['exclusive', 'shared', 'permit'],
  order: 'fifo',
  fencing: 'durable',
  ttl: { minMs: 50, stepMs: 1 },
  features: ['list', 'waiters', 'force-release', 'steal', 'transfer', 'max-waiters', 'many'],
} as const satisfies BackendCapabilities;

/** The type of the capabilities of the MySQL backend. */
export type MysqlCapabilities = typeof capabilities;

// setup: import { createLocks } from '@locks/core'; import { mysqlBackend } from '@locks/mysql'; import mysql from 'mysql2/promise';
// setup: declare function work(): Promise<void>;
/**
 * Locks in a table of MySQL (8.0 or later) or MariaDB (10.5 or later). The tables are made at the first call; constructing does
 * no I/O.
 *
 * @example
 * ```ts
 * const locks = createLocks(mysqlBackend(mysql.createPool('mysql://app@db/shop')));
 * await locks.lock('nightly-report').run(work);
 * ```
 *
 * @param source - a pool of `mysql2` or of `mysql2/promise`, which the backend never ends, or a URL,
 * `mysql://user:password@host:port/database` with the options of mysql2 as its query, for a small pool of the backend's own
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function mysqlBackend(
  source: MysqlPool | string,
  options?: MysqlBackendOptions,
): LockBackend<MysqlCapabilities> {
  const { pool, url, database, tablePrefix, autoPrepare, maxPollMs, requestTimeoutMs } = checkOptions(
    source,
    options,
  );
  const ownPool = url === undefined ? undefined : new OwnPool(url);
  const poolOf = (): Pool => pool ?? (ownPool as OwnPool).get();
  const connections = new Connections(poolOf, requestTimeoutMs);
  const unhurried = new Connections(poolOf, Number.POSITIVE_INFINITY);
  const statements = new MysqlStatements(tablesOf(tablePrefix, database));
  const schema = new Schema(connections, statements, autoPrepare, requestTimeoutMs, unhurried);
  const table = new MysqlTable({ connections, statements, schema }, maxPollMs, ownPool ?? (pool as Pool));
  return createTableBackend(table, capabilities);
}
