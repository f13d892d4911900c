import { answerWithin, readOptions } from '@locks/core/backend';
import type pg from 'pg';
import { type DatabaseSource, openPool, sourceOf } from '../pool/database-source.ts';
import { quoteSchema } from '../pool/quote-schema.ts';
import type { PostgresStatements, StatementDeadline } from '../pool/postgres-statements.ts';
import { codeOf } from '../pool/server-error.ts';
import { migrations } from './generated/migrations.ts';
import { DEFAULT_SCHEMA, SCHEMA_TABLE } from './options.ts';

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

// setup: import { migrateLeaseSchema } from '@locks/postgres';
/**
 * Creates the schema of `postgresLeaseBackend`, or brings it up to date. Any number of processes may call this at the same
 * time, and again. The role needs `CREATE` on the database, or on the schema if the schema exists.
 *
 * @throws PostgresSchemaError `NEWER_SCHEMA`, `NO_PRIVILEGE`
 * @example
 * ```ts
 * await migrateLeaseSchema({ connectionString: 'postgres://owner@db.example.com/shop', schema: 'locks' });
 * ```
 */
export async function migrateLeaseSchema(
  options: DatabaseSource & { readonly schema?: string },
): Promise<void> {
  const caller = 'migrateLeaseSchema()';
  const { schema, ...source } = readOptions(caller, options, SCHEMA_TABLE);
  const { pool, own } = openPool(sourceOf(caller, source));
  try {
    await migrate(pool, schema);
  } finally {
    if (own) await pool.end();
  }
}

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
  await migrate(statements.pool, schema, MIGRATE_MS);
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

/** @param limitMs - the time after which the connection is closed */
async function migrate(pool: pg.Pool, schema: string, limitMs?: number): Promise<void> {
  const client = await pool.connect();
  let failure: Error | undefined;
  const broken = (error: Error): void => {
    failure = error;
  };
  client.on('error', broken);
  try {
    await answerWithin(migrateOn(client, schema, limitMs), limitMs ?? Number.POSITIVE_INFINITY);
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error));
    throw codeOf(error) === INSUFFICIENT_PRIVILEGE ? noPrivilege(schema, error) : error;
  } finally {
    client.removeListener('error', broken);
    client.release(failure);
  }
}

async function migrateOn(client: pg.PoolClient, schema: string, limitMs: number | undefined): Promise<void> {
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
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    await client.query(settings.map((setting) => `SET LOCAL ${setting}`).join(';'));
    await client.query(
      'SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended($1::pg_catalog.text, 0::bigint))',
      [migrationLock(schema)],
    );
    await client.query(await upgrade(client, schema));
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/** The SQL from the version that is there to the newest one. */
async function upgrade(client: pg.PoolClient, schema: string): Promise<string> {
  // Null means that there is none: other values depend on the parsers that the application has set on its pool.
  const { rows } = await client.query<Record<'namespace' | 'version', unknown>>(
    'SELECT pg_catalog.to_regnamespace($1::pg_catalog.text) AS namespace, pg_catalog.to_regclass($2::pg_catalog.text) AS version',
    [schema, `${schema}.schema_version`],
  );
  const { namespace = null, version = null } = rows[0] ?? {};
  const found = version === null ? 0 : await versionOf(client, schema);
  refuseNewer(found, schema);
  const missing = migrations.slice(found).map((sql) => inSchema(sql, schema));
  // The statement lacks "IF NOT EXISTS", which needs the privilege to create a schema even if the schema exists.
  return [...(namespace === null ? [`CREATE SCHEMA ${schema};`] : []), ...missing].join('\n') || 'SELECT 1';
}

async function versionOf(client: pg.PoolClient, schema: string): Promise<number> {
  const { rows } = await client.query<{ version: number }>(`SELECT version FROM ${schema}.schema_version`);
  return Number(rows[0]?.version ?? 0);
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
