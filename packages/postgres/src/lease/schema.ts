import type pg from 'pg';
import { openPlace, type Place } from '../pool/place.ts';
import { quoteSchema } from '../pool/schema-name.ts';
import { NoAnswerError, type Patience, type Statements } from '../pool/statements.ts';
import { migrations } from './generated/migrations.ts';
import { defaultSchema } from './options.ts';

/** What is wrong with the schema. */
export type PostgresSchemaErrorCode =
  /** Made by a newer version of this package: upgrade this process. */
  | 'NEWER_SCHEMA'
  /** Not there, or of an older version, and this backend may not change it: run `migrateLeaseSchema`. */
  | 'NOT_MIGRATED'
  /** The role may not use it, or may not create it. */
  | 'NO_PRIVILEGE';

export class PostgresSchemaError extends Error {
  override readonly name = 'PostgresSchemaError';
  readonly code: PostgresSchemaErrorCode;
  constructor(code: PostgresSchemaErrorCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

/** The version that this package speaks to. */
const version = migrations.length;
/** "LOCKS" and a schema's name: two migrations of one schema take turns, those of others do not mind each other. */
const migrationLock = (schema: string): string => `@locks/postgres ${schema}`;
/** How long the first call of a backend tries, before the next one begins anew. */
const MIGRATE_MS = 10_000;
const undefinedTable = '42P01';
const undefinedSchema = '3F000';
const notAllowed = '42501';

/**
 * Creates the schema of `postgresLeaseBackend`, or brings it up to date. Any number of processes may do so at once, and
 * again. The role needs `CREATE` on the database, or on the schema where that is there already.
 *
 * @throws PostgresSchemaError `NEWER_SCHEMA`, `NO_PRIVILEGE`
 * @example
 * ```ts
 * await migrateLeaseSchema({ connectionString: 'postgres://owner@db.example.com/shop', schema: 'locks' });
 * ```
 */
export async function migrateLeaseSchema(place: Place & { readonly schema?: string }): Promise<void> {
  const schema = quoteSchema('migrateLeaseSchema', place.schema ?? defaultSchema);
  const { pool, own } = openPlace(place);
  try {
    await migrate(pool, schema);
  } finally {
    if (own) await pool.end();
  }
}

/**
 * The SQL that `migrateLeaseSchema` would run in an empty database, for those who keep their own migrations.
 */
export function leaseSchemaSql(schema: string = defaultSchema): string {
  const quoted = quoteSchema('leaseSchemaSql', schema);
  return [`CREATE SCHEMA IF NOT EXISTS ${quoted};`, ...migrations.map((sql) => inSchema(sql, quoted))].join(
    '\n',
  );
}

/** Finds the schema as this package needs it, or makes it so. */
export async function ensureSchema(
  statements: Statements,
  schema: string,
  mayMigrate: boolean,
  call: Patience,
): Promise<void> {
  const found = await look(statements, schema, call);
  refuseNewer(found, schema);
  if (found === version) return;
  if (!mayMigrate) {
    throw new PostgresSchemaError(
      'NOT_MIGRATED',
      `The schema ${schema} is at version ${found} and must be at ${version}: run migrateLeaseSchema() or the SQL of ` +
        'leaseSchemaSql() as a role that may, or leave out `migrate: false`.',
    );
  }
  await migrate(statements.pool, schema, MIGRATE_MS);
  await look(statements, schema, call);
}

/** The version that is there; 0 for none. Also finds out whether statements may be prepared. */
async function look(statements: Statements, schema: string, call: Patience): Promise<number> {
  try {
    const sql = `SELECT version, pg_backend_pid() FROM ${schema}.schema_version`;
    const { rows, processId } = await statements.run(sql, [], call);
    // Only where every session is known to stay with its connection.
    statements.prepare = Number(rows[0]?.[1]) === processId;
    return Number(rows[0]?.[0] ?? 0);
  } catch (error) {
    if (hasCode(error, undefinedTable) || hasCode(error, undefinedSchema)) return 0;
    throw hasCode(error, notAllowed) ? noPrivilege(schema, error) : error;
  }
}

/** With a limit, a connection that has not done it by then is given up. */
async function migrate(pool: pg.Pool, schema: string, limitMs?: number): Promise<void> {
  const client = await pool.connect();
  let failure: Error | undefined;
  const broken = (error: Error): void => {
    failure = error;
  };
  client.on('error', broken);
  try {
    await inTime(migrateOn(client, schema, limitMs), limitMs);
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error));
    throw hasCode(error, notAllowed) ? noPrivilege(schema, error) : error;
  } finally {
    client.removeListener('error', broken);
    client.release(failure);
  }
}

async function migrateOn(client: pg.PoolClient, schema: string, limitMs: number | undefined): Promise<void> {
  // Of this transaction: a pooler may lend the connection to others after it.
  const settings = ['statement_timeout = 0', 'client_min_messages = warning'];
  // So that neither this server process nor those that wait for it outlive the connection.
  if (limitMs !== undefined)
    settings.push(`idle_in_transaction_session_timeout = ${limitMs}`, `lock_timeout = ${limitMs}`);
  try {
    await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
    await client.query(settings.map((setting) => `SET LOCAL ${setting}`).join(';'));
    await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [migrationLock(schema)]);
    await client.query(await upgrade(client, schema));
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

async function inTime(work: Promise<void>, limitMs: number | undefined): Promise<void> {
  if (limitMs === undefined) return await work;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new NoAnswerError()), limitMs);
  });
  await Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** What is missing, as SQL. */
async function upgrade(client: pg.PoolClient, schema: string): Promise<string> {
  const name = schema.slice(1, -1);
  const there = await client.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [name]);
  const table = await client.query(
    "SELECT 1 FROM pg_tables WHERE schemaname = $1 AND tablename = 'schema_version'",
    [name],
  );
  const found = table.rows.length === 0 ? 0 : await versionOf(client, schema);
  refuseNewer(found, schema);
  const missing = migrations.slice(found).map((sql) => inSchema(sql, schema));
  // Asked for only where it is needed: "if not exists" needs the privilege all the same.
  return (
    [...(there.rows.length === 0 ? [`CREATE SCHEMA ${schema};`] : []), ...missing].join('\n') || 'SELECT 1'
  );
}

async function versionOf(client: pg.PoolClient, schema: string): Promise<number> {
  const { rows } = await client.query<{ version: number }>(`SELECT version FROM ${schema}.schema_version`);
  return Number(rows[0]?.version ?? 0);
}

function refuseNewer(found: number, schema: string): void {
  if (found <= version) return;
  throw new PostgresSchemaError(
    'NEWER_SCHEMA',
    `The schema ${schema} is at version ${found}, made by a newer @locks/postgres; this one knows versions up to ` +
      `${version}. Upgrade this process, or give it another \`schema\`.`,
  );
}

function noPrivilege(schema: string, cause: unknown): PostgresSchemaError {
  return new PostgresSchemaError(
    'NO_PRIVILEGE',
    `The role may not use or create the schema ${schema}. Have its owner run migrateLeaseSchema() and grant: USAGE on the ` +
      'schema; SELECT, INSERT, UPDATE, DELETE on all its tables; USAGE on all its sequences.',
    cause,
  );
}

function inSchema(sql: string, schema: string): string {
  return sql.replaceAll('@schema@', schema);
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && (error as { code?: unknown }).code === code;
}
