import { answerWithin } from '@locks/core/backend';
import { ask } from '../driver/ask.ts';
import {
  canOpen,
  type Connection,
  type PooledConnection,
  type PostgresDriver,
} from '../driver/postgres-driver.ts';
import type { PostgresStatements, StatementDeadline } from '../driver/postgres-statements.ts';
import { quoteSchema } from '../driver/quote-schema.ts';
import { asError, codeOf } from '../driver/server-error.ts';
import { migrations } from './generated/migrations.ts';
import { DEFAULT_SCHEMA } from './options.ts';

/** The reason why a schema cannot be used. */
export type PostgresSchemaErrorCode =
  /** A newer version of this package made the schema: upgrade this process. */
  | 'NEWER_SCHEMA'
  /** The schema does not exist, or is of an older version, and this backend may not change it: run `migrateLeaseSchema`. */
  | 'NOT_MIGRATED'
  /** The role lacks the privilege to use the schema, or to create it. */
  | 'NO_PRIVILEGE';

/** The schema in the database is missing, or is not the one that this version works with; `code` says which. */
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

/**
 * The SQL that `migrateLeaseSchema` runs in an empty database, for your own migrations.
 */
export function leaseSchemaSql(schema: string = DEFAULT_SCHEMA): string {
  const quoted = quoteSchema(schema, 'leaseSchemaSql(): schema');
  return [`CREATE SCHEMA IF NOT EXISTS ${quoted};`, ...migrations.map((sql) => inSchema(sql, quoted))].join(
    '\n',
  );
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
      `The schema ${schema} is at version ${found} and must be at ${VERSION}: run migrateLeaseSchema() or the SQL of ` +
        'leaseSchemaSql() as a role with the privilege, or leave out `migrate: false`.',
    );
  }
  const { driver } = statements;
  // The only session of a database in this process has no client that could be gone.
  await migrate(driver, schema, canOpen(driver) ? MIGRATE_MS : undefined);
  await findVersion(statements, schema, call);
}

/** The version of the schema in the database; 0: there is none. Also finds out whether statements may be prepared. */
async function findVersion(
  statements: PostgresStatements,
  schema: string,
  call: StatementDeadline,
): Promise<number> {
  try {
    const sql = `SELECT version, pg_catalog.pg_backend_pid() FROM ${schema}.schema_version`;
    const { rows, processId } = await statements.run(sql, [], call);
    // Statements are prepared only where a session is known to stay with its connection.
    statements.prepare = Number(rows[0]?.[1]) === processId;
    return Number(rows[0]?.[0] ?? 0);
  } catch (error) {
    if (codeOf(error) === UNDEFINED_TABLE || codeOf(error) === UNDEFINED_SCHEMA) return 0;
    throw codeOf(error) === INSUFFICIENT_PRIVILEGE ? noPrivilege(schema, error) : error;
  }
}

/** Migrates by a driver that nobody else uses, and closes it. */
export async function migrateBy(driver: PostgresDriver, schema: string): Promise<void> {
  try {
    await migrate(driver, schema);
  } finally {
    await driver.close();
  }
}

/**
 * Creates the schema, or brings it up to date.
 *
 * @param limitMs - the time after which the connection is closed
 */
async function migrate({ pool }: PostgresDriver, schema: string, limitMs?: number): Promise<void> {
  const connection = await new Promise<PooledConnection>((resolve, reject) => {
    pool.connect((error, lent) => {
      if (lent !== undefined) resolve(lent);
      else reject(error ?? new Error('the pool gave no connection'));
    });
  });
  let failure: Error | undefined;
  try {
    await answerWithin(migrateOn(connection, schema, limitMs), limitMs ?? Number.POSITIVE_INFINITY);
  } catch (error) {
    failure = asError(error);
    throw codeOf(error) === INSUFFICIENT_PRIVILEGE ? noPrivilege(schema, error) : error;
  } finally {
    connection.release(failure);
  }
}

async function migrateOn(connection: Connection, schema: string, limitMs: number | undefined): Promise<void> {
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

async function versionOf(connection: Connection, schema: string): Promise<number> {
  const [[version] = []] = await ask(connection, { text: `SELECT version FROM ${schema}.schema_version` });
  return Number(version ?? 0);
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
    `The role lacks the privilege to use or create the schema ${schema}. Have its owner run migrateLeaseSchema() and grant: USAGE on the ` +
      'schema; SELECT, INSERT, UPDATE, DELETE on all its tables; USAGE on all its sequences.',
    cause,
  );
}

function inSchema(sql: string, schema: string): string {
  return sql.replaceAll('@schema@', schema);
}
