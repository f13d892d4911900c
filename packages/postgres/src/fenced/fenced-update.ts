import { LockError } from '@locks/core';
import type pg from 'pg';
import { invalid, show } from '../transaction/lock-name.ts';

/** A write to one row, and the fencing token that it is made under. */
export interface FencedUpdate {
  /** The table; with its schema as `['inventory', 'stock']`. Quoted as it stands, so upper and lower case count. */
  readonly table: string | readonly [schema: string, table: string];
  /** The columns that name the row, and their values. Together they must be unique. */
  readonly key: Readonly<Record<string, unknown>>;
  /** What to write: columns and their values. */
  readonly set: Readonly<Record<string, unknown>>;
  /** The token of the lease under which this is written: `lease.fencingToken`. */
  readonly token: bigint;
  /**
   * The column, of type `bigint`, that keeps the highest token the row was written under. `NULL` gives way to any token.
   *
   * @defaultValue `'fencing_token'`
   */
  readonly fenceColumn?: string;
}

/** Where the write happens: a `Client`, a `PoolClient` in your transaction, or a `Pool`. */
export type QueryClient = Pick<pg.ClientBase, 'query'>;

/**
 * Writes a row, unless it was written before under a newer fencing token: so that a holder that lost its lease without
 * knowing it yet cannot overwrite what its successor wrote. The comparison and the write are one statement, in your
 * transaction if you are in one.
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
export async function fencedUpdate(client: QueryClient, update: FencedUpdate): Promise<boolean> {
  const { table, key, set, token, fenceColumn = 'fencing_token' } = update;
  if (typeof token !== 'bigint') {
    throw invalid(`token must be the lease's fencingToken, a bigint, not ${show(token)}`);
  }
  const target = (typeof table === 'string' ? [table] : table).map((part) => quoted('table', part)).join('.');
  const fence = quoted('fenceColumn', fenceColumn);
  if (Object.hasOwn(set, fenceColumn) || Object.hasOwn(key, fenceColumn)) {
    throw invalid(`key and set must leave the column ${show(fenceColumn)} alone: it keeps the token`);
  }
  const values: unknown[] = [];
  const parameter = (value: unknown): string => `$${values.push(value)}`;
  const assignments = columnsOf('set', set).map(([column, value]) => `${column} = ${parameter(value)}`);
  const newToken = `${parameter(String(token))}::int8`;
  const matches = columnsOf('key', key).map(([column, value]) => `${column} = ${parameter(value)}`);
  // Where another transaction has just written the row, PostgreSQL compares again with what that one left.
  const sql = `UPDATE ${target} SET ${[...assignments, `${fence} = ${newToken}`].join(', ')}
     WHERE ${matches.join(' AND ')} AND (${fence} IS NULL OR ${fence} <= ${newToken})`;
  // Once more for a row that came in between the two statements.
  for (let tries = 1; tries <= 2; tries += 1) {
    const { rowCount } = await client.query(sql, values);
    if (rowCount === 1) return true;
    if (rowCount !== 0 && rowCount !== null) {
      throw invalid(`key names ${rowCount} rows of ${target}: roll back, and name one by a unique key`);
    }
    if (!(await isThere(client, target, fence, key, token))) return false;
  }
  return false;
}

/** Whether there is such a row, with no newer token. */
async function isThere(
  client: QueryClient,
  target: string,
  fence: string,
  key: FencedUpdate['key'],
  token: bigint,
): Promise<boolean> {
  const columns = columnsOf('key', key);
  const matches = columns.map(([column], index) => `${column} = $${index + 1}`);
  const { rows } = await client.query<{ there: boolean; fence: string | null }>(
    `SELECT count(*) > 0 AS there, max(${fence})::text AS fence FROM ${target} WHERE ${matches.join(' AND ')}`,
    columns.map(([, value]) => value),
  );
  const { there = false, fence: newest = null } = rows[0] ?? {};
  if (newest === null || BigInt(newest) <= token) return there;
  throw new LockError(
    'LOCK_LOST',
    `Nothing was written to ${target}: the row was written under token ${newest}, which is newer than ${token}. ` +
      'Another holder has the lock by now, or had it since.',
    { backend: 'postgres', reason: 'taken-over' },
  );
}

function columnsOf(what: 'key' | 'set', columns: unknown): readonly (readonly [string, unknown])[] {
  if (typeof columns !== 'object' || columns === null || Object.keys(columns).length === 0) {
    throw invalid(`${what} must be an object with at least one column, not ${show(columns)}`);
  }
  return Object.entries(columns).map(([column, value]) => {
    if (value === undefined) throw invalid(`${what}.${column} is undefined: leave it out, or write null`);
    // NULL equals nothing, so the row would never be found.
    if (value === null && what === 'key') throw invalid(`key.${column} is null: a key has a value`);
    return [quoted(what, column), value] as const;
  });
}

function quoted(what: string, identifier: unknown): string {
  if (typeof identifier !== 'string' || identifier === '' || identifier.includes('\0')) {
    throw invalid(`${what} must name a table or column, not ${show(identifier)}`);
  }
  return `"${identifier.replaceAll('"', '""')}"`;
}
