import type { BackendCapabilities, LockBackend } from '@locks/core/backend';
import { createTableBackend } from '@locks/record-protocol/table';
import { Connections } from './connections.ts';
import { MysqlStatements } from './mysql-statements.ts';
import { MysqlTable } from './mysql-table.ts';
import { checkOptions, type MysqlBackendOptions } from './options.ts';
import { OwnPool } from './own-pool.ts';
import { Schema } from './schema.ts';
import { tablesOf } from './tables.ts';

const capabilities = {
  tenure: 'lease',
  reach: 'network',
  modes: ['exclusive', 'shared', 'permit'],
  order: 'fifo',
  fencing: 'durable',
  ttl: { minMs: 50, stepMs: 1 },
  features: ['list', 'waiters', 'force-release', 'steal', 'hand-over', 'max-waiters', 'many'],
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
 * const locks = createLocks(mysqlBackend({ pool: mysql.createPool('mysql://app@db/shop') }));
 * await locks.lock('nightly-report').run(work);
 * ```
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function mysqlBackend(options: MysqlBackendOptions): LockBackend<MysqlCapabilities> {
  const { pool, uri, database, tablePrefix, createTables, maxPollMs, statementTimeoutMs } =
    checkOptions(options);
  const ownPool = uri === undefined ? undefined : new OwnPool(uri);
  const connections = new Connections(() => pool ?? (ownPool as OwnPool).get(), statementTimeoutMs);
  const statements = new MysqlStatements(tablesOf(tablePrefix, database));
  const schema = new Schema(connections, statements, createTables, statementTimeoutMs);
  const table = new MysqlTable({ connections, statements, schema }, maxPollMs, ownPool);
  return createTableBackend(table, capabilities);
}
