import { mustBe } from '@locks/core/backend';
import type pg from 'pg';

/**
 * Runs one statement in your transaction, with the parameters `$1`, `$2` and so on. Each stands in the text once, in the order of
 * the values, so that a library with other placeholders can replace them. Resolves with the rows, or with an object that has `rows`.
 */
export type SqlExecutor = (text: string, values: readonly unknown[]) => PromiseLike<unknown>;

/** The transaction of a library: a client of `pg`, a transaction of `postgres` (postgres.js), or a function that runs a statement. */
export type SqlClient =
  | Pick<pg.ClientBase, 'query'>
  | {
      /** Runs a statement, as the transactions of postgres.js do. */
      unsafe(text: string, values?: never[]): PromiseLike<unknown>;
    }
  | SqlExecutor;

/** A row, its columns by name. */
export type SqlRow = Readonly<Record<string, unknown>>;

/** Runs a statement and resolves with its rows. */
export type RunSql = (text: string, values?: readonly unknown[]) => Promise<readonly SqlRow[]>;

/**
 * The function that runs statements on a client, of whatever kind.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for anything else
 */
export function runnerOf(caller: string, client: SqlClient): RunSql {
  const execute = executorOf(client);
  if (execute === undefined) {
    throw mustBe(
      `The client of ${caller}`,
      'a client of pg, a transaction of postgres.js, or a function (text, values) => rows that runs a statement in your transaction',
      client,
    );
  }
  return async (text, values = []) => {
    const result: unknown = await execute(text, values);
    const rows: unknown = Array.isArray(result)
      ? result
      : (result as { rows?: unknown } | null | undefined)?.rows;
    if (Array.isArray(rows)) return rows as readonly SqlRow[];
    throw mustBe(`The result of the executor of ${caller}`, 'the rows, or an object with rows', result);
  };
}

function executorOf(client: SqlClient | undefined | null): SqlExecutor | undefined {
  if (client === null || (typeof client !== 'object' && typeof client !== 'function')) return undefined;
  const { unsafe, query, raw } = client as Record<string, unknown>;
  for (const method of [unsafe, query]) {
    if (typeof method === 'function')
      return (text, values) => method.call(client, text, [...values]) as PromiseLike<unknown>;
  }
  // A transaction of Knex is a function that makes a query of a table.
  return typeof client === 'function' && raw === undefined ? (client as SqlExecutor) : undefined;
}
