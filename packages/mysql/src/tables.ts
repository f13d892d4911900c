import { readOptions } from '@locks/core/backend';
import { TABLES_TABLE } from './options.ts';

/** The quoted names of the tables. */
export interface Tables {
  readonly locks: string;
  readonly clients: string;
  readonly meta: string;
  /** The tables of `once` and `coalesce`. */
  readonly onceSlots: string;
  readonly sharedResults: string;
}

/** The longest key or text in the tables of `once` and `coalesce`, in bytes. */
export const MOST_BYTES = 512;

/** The columns of the table of `mysqlSlots()`. Texts are compared byte by byte, as the names of locks. */
export const ONCE_SLOTS_COLUMNS = `job VARBINARY(${MOST_BYTES}) NOT NULL PRIMARY KEY, slot VARBINARY(${MOST_BYTES}) NOT NULL,
  state VARBINARY(5) NOT NULL, token BIGINT NOT NULL, label VARBINARY(256) NOT NULL, at BIGINT NOT NULL,
  version SMALLINT NOT NULL DEFAULT 1`;

/** The columns of the table of `mysqlResults()`. Keys are compared byte by byte, as the names of locks. */
export const SHARED_RESULTS_COLUMNS = `name VARBINARY(${MOST_BYTES}) NOT NULL PRIMARY KEY, value LONGBLOB NOT NULL,
  token BIGINT NOT NULL, ends_at BIGINT NOT NULL, INDEX (ends_at)`;

/** The version of the schema that this package makes and understands. */
export const SCHEMA_VERSION = 1;

export function tablesOf(prefix: string, database: string | undefined): Tables {
  const quoted = (name: string): string =>
    (database === undefined ? '' : `\`${database}\`.`) + `\`${prefix}${name}\``;
  return {
    locks: quoted('locks'),
    clients: quoted('clients'),
    meta: quoted('meta'),
    onceSlots: quoted('once_slots'),
    sharedResults: quoted('shared_results'),
  };
}

// setup: import { schemaStatements } from '@locks/mysql'; import mysql from 'mysql2/promise';
// setup: declare const pool: mysql.Pool;
/**
 * Returns the statements that make the tables, those of `mysqlSlots()` and `mysqlResults()` too, for migrations of your own: `prepare()`
 * of the locks runs them as well. Each may be run again.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 * @example
 * ```ts
 * for (const statement of schemaStatements({ tablePrefix: 'locks_' })) await pool.query(statement);
 * ```
 */
export function schemaStatements(options?: {
  readonly database?: string;
  readonly tablePrefix?: string;
}): readonly string[] {
  const { tablePrefix, database } = readOptions('schemaStatements()', options, TABLES_TABLE);
  const tables = tablesOf(tablePrefix, database);
  return [...createStatements(tables), ...onceTables(tables).map(({ create }) => create)];
}

/** The tables of `once` and `coalesce`, which the first call of either makes too. */
export function onceTables({
  onceSlots,
  sharedResults,
}: Tables): readonly { readonly name: string; readonly create: string }[] {
  return [
    { name: onceSlots, create: createStatement(onceSlots, ONCE_SLOTS_COLUMNS) },
    { name: sharedResults, create: createStatement(sharedResults, SHARED_RESULTS_COLUMNS) },
  ];
}

export function createStatement(table: string, columns: string): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (${columns}) ENGINE=InnoDB`;
}

/** The statements that create the tables. The version is written last: where it exists, the tables are complete. */
export function createStatements({ locks, clients, meta }: Tables): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${locks} (
  name VARBINARY(512) NOT NULL PRIMARY KEY,
  version BIGINT NOT NULL,
  token BIGINT NOT NULL,
  waiting INT NOT NULL,
  free_at BIGINT NOT NULL,
  at BIGINT NOT NULL,
  state MEDIUMBLOB NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC`,
    `CREATE TABLE IF NOT EXISTS ${clients} (
  client VARBINARY(64) NOT NULL PRIMARY KEY,
  seen_at BIGINT NOT NULL
) ENGINE=InnoDB`,
    `CREATE TABLE IF NOT EXISTS ${meta} (
  item VARBINARY(32) NOT NULL PRIMARY KEY,
  value BIGINT NOT NULL
) ENGINE=InnoDB`,
    `INSERT IGNORE INTO ${meta} (item, value) VALUES ('token', 0), ('swept_at', 0)`,
    `INSERT IGNORE INTO ${meta} (item, value) VALUES ('version', ${SCHEMA_VERSION})`,
  ];
}
