import { LockError, type LockEvents } from '@locks/core';
import {
  invalidArgument,
  matching,
  mustBe,
  optional,
  type OptionTable,
  readOptions,
  text,
} from '@locks/core/backend';
import { channel } from 'node:diagnostics_channel';
import { poolRunnerOf } from '../transaction/outside-runner.ts';
import type { RunSql, SqlClient } from '../transaction/sql-client.ts';

/** A write to one row, and the fencing token that it is made under. */
export interface FencedUpdate {
  /** The table; with its schema as `['inventory', 'stock']`. Upper and lower case count: the name is quoted. */
  readonly table: string | readonly [schema: string, table: string];
  /** The columns that identify the row, and their values, compared with PostgreSQL's own `=`. Together they must be unique. */
  readonly key: Readonly<Record<string, unknown>>;
  /** The columns to write, and their values. */
  readonly set: Readonly<Record<string, unknown>>;
  /** The token of the lease under which this is written: `lease.fencingToken`. */
  readonly token: bigint;
  /**
   * The column, of type `bigint`, with the highest token under which the row was written. Any token may replace `NULL`.
   *
   * @defaultValue `'fencing_token'`
   */
  readonly fenceColumn?: string;
}

// setup: import { createLocks } from '@locks/core'; import { fencedUpdate, postgresLeaseBackend } from '@locks/postgres'; import { Pool } from 'pg';
// setup: const client = new Pool(); const locks = createLocks(postgresLeaseBackend(client));
/**
 * Writes a row, unless it was written before under a newer fencing token. So a holder that does not know yet that it lost its
 * lease cannot overwrite what its successor wrote. The comparison and the write are one statement, in your transaction if
 * you are in one.
 *
 * @example
 * ```ts
 * await locks.lock('sku:42').run(async (lease) => {
 *   const { fencingToken: token } = lease;
 *   await fencedUpdate(client, { table: 'stock', key: { sku: 42 }, set: { quantity: 7 }, token });
 * });
 * ```
 *
 * @returns whether the row was written; `false`: no row has this key, or a trigger or a policy of the table prevents it
 * @throws LockError `LOCK_LOST` with reason `taken-over` when the row has a newer token: nothing was written, and the
 * transaction should be rolled back. `LOCK_INVALID_ARGUMENT` for a bad argument, or a key that names several rows.
 */
export async function fencedUpdate(client: SqlClient, update: FencedUpdate): Promise<boolean> {
  const run = poolRunnerOf('fencedUpdate()', client);
  const { table, key, set, token, fenceColumn } = readOptions('fencedUpdate()', update, TABLE);
  const target = (typeof table === 'string' ? [table] : table).map((part) => quoted('table', part)).join('.');
  const fence = quoted('fenceColumn', fenceColumn);
  if (Object.hasOwn(set, fenceColumn) || Object.hasOwn(key, fenceColumn)) {
    throw invalidArgument(
      `fencedUpdate(): key and set must leave out the column ${JSON.stringify(fenceColumn)}, which has the token.`,
    );
  }
  const values: unknown[] = [];
  const parameter = (value: unknown): string => `$${values.push(value)}`;
  const assignments = columnsOf('set', set).map(([column, value]) => `${column} = ${parameter(value)}`);
  const newToken = (): string => `${parameter(String(token))}::bigint`;
  assignments.push(`${fence} = ${newToken()}`);
  const matches = columnsOf('key', key).map(
    ([column, value]) => `${column} OPERATOR(pg_catalog.=) ${parameter(value)}`,
  );
  // If another transaction is writing the row, PostgreSQL waits for it and checks the conditions again with the new row. The
  // number of rows is a column, since not every library tells it otherwise.
  const sql = `WITH written AS (UPDATE ${target} SET ${assignments.join(', ')}
     WHERE ${matches.join(' AND ')} AND (${fence} IS NULL OR ${fence} OPERATOR(pg_catalog.<=) ${newToken()}) RETURNING 1)
     SELECT pg_catalog.count(*)::pg_catalog.text AS written FROM written`;
  // The update is tried twice, for a row that was inserted between the two statements.
  for (let tries = 1; tries <= 2; tries += 1) {
    const written = Number((await run(sql, values))[0]?.['written']);
    if (written === 1) return true;
    if (written !== 0) {
      throw invalidArgument(
        `fencedUpdate(): key names ${written} rows of ${target}. Roll back, and use a unique key.`,
      );
    }
    if (!(await hasRow(run, target, fence, key, token))) return false;
  }
  return false;
}

/** The largest number of a column of type `bigint`. */
const LAST_BIGINT = 2n ** 63n - 1n;
const rejectedChannel = channel('locks:fence-rejected');
const readColumns = matching('an object with at least one column', isColumns);
const TABLE = {
  table: matching('the name of a table, or [schema, table]', isTable),
  key: readColumns,
  set: readColumns,
  token: matching('the fencingToken of the lease, a bigint of 1 to 9223372036854775807', isToken),
  fenceColumn: optional(text('the name of a column', /./s), 'fencing_token'),
} satisfies OptionTable<FencedUpdate>;

function isTable(value: unknown): value is FencedUpdate['table'] {
  return typeof value === 'string' || (Array.isArray(value) && value.length === 2);
}

function isColumns(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}

/** No grant has a token of 0 or less: whoever passes one has computed it, and every write under a real token would be refused or not. */
function isToken(value: unknown): value is bigint {
  return typeof value === 'bigint' && value > 0n && value <= LAST_BIGINT;
}

/** Returns whether a row has this key. Throws if its token is newer. */
async function hasRow(
  run: RunSql,
  target: string,
  fence: string,
  key: FencedUpdate['key'],
  token: bigint,
): Promise<boolean> {
  const columns = columnsOf('key', key);
  const matches = columns.map(([column], index) => `${column} OPERATOR(pg_catalog.=) $${index + 1}`);
  const [row] = await run(
    `SELECT pg_catalog.count(*)::pg_catalog.text AS found, pg_catalog.max(${fence})::pg_catalog.text AS fence
     FROM ${target} WHERE ${matches.join(' AND ')}`,
    columns.map(([, value]) => value),
  );
  const newest = row?.['fence'] as string | null | undefined;
  if (newest === null || newest === undefined || BigInt(newest) <= token) return Number(row?.['found']) > 0;
  const event = { backend: 'postgres', target, token };
  rejectedChannel.publish(event satisfies LockEvents['locks:fence-rejected']);
  throw new LockError(
    'LOCK_LOST',
    `Nothing was written to ${target}: the row was written under token ${newest}, which is newer than ${token}. ` +
      'Another holder has the lock by now, or had it since.',
    { backend: 'postgres', reason: 'taken-over' },
  );
}

function columnsOf(
  what: 'key' | 'set',
  columns: Readonly<Record<string, unknown>>,
): readonly (readonly [string, unknown])[] {
  return Object.entries(columns).map(([column, value]) => {
    if (value === undefined)
      throw invalidArgument(`fencedUpdate(): ${what}.${column} is undefined. Leave it out, or write null.`);
    // NULL equals nothing, so no row would match.
    if (value === null && what === 'key')
      throw invalidArgument(`fencedUpdate(): key.${column} is null. A key must have a value.`);
    return [quoted(what, column), value] as const;
  });
}

function quoted(what: string, identifier: unknown): string {
  if (typeof identifier !== 'string' || identifier === '' || identifier.includes('\0')) {
    throw mustBe(`fencedUpdate(): ${what}`, 'the name of a table or column', identifier);
  }
  return `"${identifier.replaceAll('"', '""')}"`;
}
