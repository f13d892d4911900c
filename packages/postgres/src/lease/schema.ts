import { LockError } from '@locks/core';
import { answerWithin, PRIORITIES, readOptions } from '@locks/core/backend';
import { ask } from '../driver/ask.ts';
import {
  canOpen,
  type Connection,
  type PooledConnection,
  type PostgresDriver,
} from '../driver/postgres-driver.ts';
import type { PostgresStatements, StatementDeadline } from '../driver/postgres-statements.ts';
import { asError, codeOf } from '../driver/server-error.ts';
import { migrations } from './generated/migrations.ts';
import { SCHEMA_TABLE } from './options.ts';
import { creationLock, onceSlots, sharedResults, type TableOfOnce } from './tables-of-once.ts';

/** The reason why a schema cannot be used. */
export type PostgresSchemaErrorCode =
  /** A newer version of this package made the schema: upgrade this process. */
  | 'NEWER_SCHEMA'
  /** The schema does not exist, or is of an older version, and this backend may not change it: call `prepare()` of the locks. */
  | 'NOT_MIGRATED'
  /** The role lacks the privilege to use the schema, or to create it. */
  | 'NO_PRIVILEGE';

/** The `cause` of a `LOCK_BACKEND` error: the schema in the database is missing, or is not the one that this version works with; `code` says which. */
export class PostgresSchemaError extends Error {
  override readonly name = 'PostgresSchemaError';
  /** The reason why the schema cannot be used. */
  readonly code: PostgresSchemaErrorCode;
  constructor(code: PostgresSchemaErrorCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

/** The version of the schema that this package uses. */
const VERSION = migrations.length;
/** The key of the advisory lock of a migration: migrations of one schema run one after another. */
const migrationLock = (schema: string): string => `@locks/postgres ${schema}`;
/** The time for which the first call of a backend tries to migrate. Then it fails, and the next call starts again. */
const MIGRATE_MS = 10_000;
const UNDEFINED_TABLE = '42P01';
const UNDEFINED_SCHEMA = '3F000';
const INSUFFICIENT_PRIVILEGE = '42501';

// setup: import { schemaStatements } from '@locks/postgres'; import { Pool } from 'pg';
// setup: declare const pool: Pool;
/**
 * Returns the statements that `prepare()` of the locks runs in an empty database, for migrations of your own. They make the tables of
 * `postgresSlots()` and `postgresResults()` too. Each text is one query without parameters, and may have several statements.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 * @example
 * ```ts
 * for (const statement of schemaStatements({ schema: 'locks' })) await pool.query(statement);
 * ```
 */
export function schemaStatements(options?: { readonly schema?: string }): readonly string[] {
  const { schema } = readOptions('schemaStatements()', options, SCHEMA_TABLE);
  return [
    `CREATE SCHEMA IF NOT EXISTS ${schema};`,
    ...migrations.map((sql) => inSchema(sql, schema)),
    ...tablesOfOnce(schema).map(({ create }) => create),
  ];
}

function tablesOfOnce(schema: string): readonly TableOfOnce[] {
  return [onceSlots(schema), sharedResults(schema)];
}

/** Checks the version of the schema, and migrates it if that is allowed. */
export async function ensureSchema(
  statements: PostgresStatements,
  schema: string,
  mayMigrate: boolean,
  call: StatementDeadline,
): Promise<void> {
  const found = await findVersion(statements, schema, call);
  refuseNewer(found, schema);
  if (found === VERSION) return;
  if (!mayMigrate) {
    throw new PostgresSchemaError(
      'NOT_MIGRATED',
      `The schema ${schema} is at version ${found} and must be at ${VERSION}: call prepare() of the locks as a ` +
        'role with the privilege, or leave out `autoPrepare: false`.',
    );
  }
  const { driver } = statements;
  // The only session of a database in this process has no client that could be gone.
  const limitMs = canOpen(driver) ? MIGRATE_MS : undefined;
  await migrate(driver, schema, { limitMs, signal: undefined, withOnce: false });
  await findVersion(statements, schema, call);
}

/** The version of the schema in the database; 0: there is none. Also finds out whether statements may be prepared. */
async function findVersion(
  statements: PostgresStatements,
  schema: string,
  call: StatementDeadline,
): Promise<number> {
  try {
    const sql = `SELECT version, pg_catalog.pg_backend_pid(), pg_catalog.current_setting('transaction_isolation') FROM ${schema}.schema_version`;
    const { rows, processId } = await statements.run(sql, [], call, PRIORITIES.holder);
    refuseIsolation(rows[0]?.[2]);
    // Statements are prepared only where a session is known to stay with its connection.
    statements.prepare = Number(rows[0]?.[1]) === processId;
    return Number(rows[0]?.[0] ?? 0);
  } catch (error) {
    if (codeOf(error) === UNDEFINED_TABLE || codeOf(error) === UNDEFINED_SCHEMA) return 0;
    throw codeOf(error) === INSUFFICIENT_PRIVILEGE ? noPrivilege(schema, error) : error;
  }
}

/** Where a migration ends without being done, and what else it makes. */
interface Migration {
  /** The time after which the connection is closed, in milliseconds. */
  readonly limitMs: number | undefined;
  /** Closes the connection when it aborts. */
  readonly signal: AbortSignal | undefined;
  /** Whether the tables of `once` and `coalesce` are made too. */
  readonly withOnce: boolean;
}

/**
 * Creates the schema, or brings it up to date, with the tables of `once` and `coalesce`. It waits for others that do so.
 *
 * @throws PostgresSchemaError; errors of the server and of the driver as they are
 */
export async function prepareSchema(
  driver: PostgresDriver,
  schema: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  await migrate(driver, schema, { limitMs: undefined, signal, withOnce: true });
}

async function migrate({ pool }: PostgresDriver, schema: string, migration: Migration): Promise<void> {
  const connection = await new Promise<PooledConnection>((resolve, reject) => {
    pool.connect((error, lent) => {
      if (lent !== undefined) resolve(lent);
      else reject(error ?? new Error('the pool gave no connection'));
    });
  });
  const { limitMs = Number.POSITIVE_INFINITY, signal } = migration;
  let failure: Error | undefined;
  try {
    await untilAborted(answerWithin(migrateOn(connection, schema, migration), limitMs), signal);
  } catch (error) {
    failure = asError(error);
    throw codeOf(error) === INSUFFICIENT_PRIVILEGE ? noPrivilege(schema, error) : error;
  } finally {
    connection.release(failure);
  }
}

function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise<T>((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

async function migrateOn(
  connection: Connection,
  schema: string,
  { limitMs, withOnce }: Migration,
): Promise<void> {
  // The settings are LOCAL, so they end with the transaction, after which a pooler may lend the connection to others.
  const settings = [
    'statement_timeout = 0',
    'client_min_messages = warning',
    'search_path = pg_catalog, pg_temp',
  ];
  // The server process ends when the client is gone, and so does its wait for the lock of another migration.
  if (limitMs !== undefined)
    settings.push(`idle_in_transaction_session_timeout = ${limitMs}`, `lock_timeout = ${limitMs}`);
  try {
    await ask(connection, { text: 'BEGIN ISOLATION LEVEL READ COMMITTED' });
    await ask(connection, { text: settings.map((setting) => `SET LOCAL ${setting}`).join(';') });
    await ask(connection, {
      text: 'SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended($1::pg_catalog.text, 0::bigint))',
      values: [migrationLock(schema)],
    });
    await ask(connection, { text: await upgrade(connection, schema) });
    if (withOnce) await makeTablesOfOnce(connection, schema);
    await ask(connection, { text: 'COMMIT' });
  } catch (error) {
    await ask(connection, { text: 'ROLLBACK' }).catch(() => undefined);
    throw error;
  }
}

/** The SQL from the version that is there to the newest one. */
async function upgrade(connection: Connection, schema: string): Promise<string> {
  const [[namespace, table] = []] = await ask(connection, {
    text: 'SELECT pg_catalog.to_regnamespace($1::pg_catalog.text), pg_catalog.to_regclass($2::pg_catalog.text)',
    values: [schema, `${schema}.schema_version`],
  });
  const found = table === null ? 0 : await versionOf(connection, schema);
  refuseNewer(found, schema);
  const missing = migrations.slice(found).map((sql) => inSchema(sql, schema));
  // The statement lacks "IF NOT EXISTS", which needs the privilege to create a schema even if the schema exists.
  return [...(namespace === null ? [`CREATE SCHEMA ${schema};`] : []), ...missing].join('\n') || 'SELECT 1';
}

/** A role that may not create tables may prepare those that are there. */
async function makeTablesOfOnce(connection: Connection, schema: string): Promise<void> {
  for (const table of tablesOfOnce(schema)) {
    const [[found] = []] = await ask(connection, {
      text: 'SELECT pg_catalog.to_regclass($1::pg_catalog.text)',
      values: [table.name],
    });
    if (found !== null) continue;
    await ask(connection, { text: `SELECT ${creationLock(table)}` });
    await ask(connection, { text: table.create });
  }
}

async function versionOf(connection: Connection, schema: string): Promise<number> {
  const [[version] = []] = await ask(connection, { text: `SELECT version FROM ${schema}.schema_version` });
  return Number(version ?? 0);
}

function refuseIsolation(isolation: string | null | undefined): void {
  if (isolation === 'read committed' || isolation === undefined || isolation === null) return;
  throw new LockError(
    'LOCK_UNSUPPORTED',
    `postgresLeaseBackend() needs transactions at read committed, and those of its connections are at ${isolation}. Use ALTER ROLE … SET ` +
      "default_transaction_isolation = 'read committed' for the role of the locks, or give them a pool with that setting.",
  );
}

function refuseNewer(found: number, schema: string): void {
  if (found <= VERSION) return;
  throw new PostgresSchemaError(
    'NEWER_SCHEMA',
    `The schema ${schema} is at version ${found}, made by a newer @locks/postgres; this one knows versions up to ` +
      `${VERSION}. Upgrade this process, or give it another \`schema\`.`,
  );
}

function noPrivilege(schema: string, cause: unknown): PostgresSchemaError {
  return new PostgresSchemaError(
    'NO_PRIVILEGE',
    `The role lacks a privilege on the schema ${schema}: ${asError(cause).message}. prepare() of the locks needs CREATE on the database, or ` +
      'on a schema that exists. Have a role with it prepare, and grant to the role of the application: USAGE on the schema; SELECT, INSERT, ' +
      'UPDATE, DELETE on all its tables; USAGE on all its sequences.',
    cause,
  );
}

function inSchema(sql: string, schema: string): string {
  return sql.replaceAll('@schema@', schema);
}
