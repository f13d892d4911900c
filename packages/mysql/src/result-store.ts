import { LockError } from '@locks/core';
import type { ResultStore } from '@locks/core/backend';
import type { Pool as CallbackPool } from 'mysql2';
import type { Pool as PromisePool } from 'mysql2/promise';
import { FencedTable, sqlText } from './fenced-table.ts';
import { hex } from './state-sql.ts';
import { SHARED_RESULTS_COLUMNS } from './tables.ts';

/** The options of `mysqlResults`. */
export interface MysqlResultsOptions {
  /**
   * The database of the table; it must exist.
   * @defaultValue the one that the connections use
   */
  readonly database?: string;
  /**
   * The prefix of the name of the table, `<tablePrefix>shared_results`: `A-Z a-z 0-9 _ $`, at most 48 characters. The table is made by the
   * first `get`, unless it exists, or by `prepare()` of locks in the same database with the same prefix.
   * @defaultValue `'locks_'`
   */
  readonly tablePrefix?: string;
}

/** A row is kept so much longer than its result, since its token refuses writers that lost their lock. */
const FENCE_MS = 3_600_000;
/** A write removes at most so many old rows: more than it adds. */
const SWEPT = 10;
/** The server's time in milliseconds since 1970, whatever the time zone of the session. */
const NOW = "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)";

// setup: import { createLocks } from '@locks/core'; import { mysqlBackend, mysqlResults } from '@locks/mysql'; import { coalesce } from '@locks/once'; import mysql from 'mysql2/promise';
// setup: const pool = mysql.createPool('mysql://app@db/shop'); declare function fetchPrices(signal: AbortSignal): Promise<Record<string, number>>;
/**
 * The store in which `coalesce` of `@locks/once` shares results: a row for each key in the table `locks_shared_results`, which ends by the
 * clock of the server. Its fencing token is kept for an hour more; each write removes a few older rows.
 *
 * @param pool - what `createPool()` of mysql2 or mysql2/promise gives
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad pool or option; its functions throw errors of mysql2 as they are, one with the code
 * `NO_ANSWER` after 10 s, and `set` `LOCK_LOST` with reason `taken-over` when a newer token wrote before
 * @example
 * ```ts
 * const locks = createLocks(mysqlBackend(pool));
 * const options = { store: mysqlResults(pool), shareForMs: 5_000 };
 * const prices = await coalesce(locks, 'prices', ({ signal }) => fetchPrices(signal), options);
 * ```
 */
export function mysqlResults(pool: CallbackPool | PromisePool, options?: MysqlResultsOptions): ResultStore {
  const table = new FencedTable('mysqlResults()', 'shared_results', pool, options);
  return {
    async get(key) {
      const sql = `SELECT value, @@autocommit FROM ${table.name} WHERE name = ${nameOf(key)} AND ends_at > ${NOW}`;
      const [row] = await table.read(sql, SHARED_RESULTS_COLUMNS);
      return row?.[0]?.toString();
    },
    async set(key, value, token, ttlMs) {
      const row = {
        name: nameOf(key),
        value: hex(Buffer.from(value)),
        ends_at: `${NOW} + ${Math.ceil(ttlMs)}`,
      };
      if (!(await table.put(row, token))) {
        const says = `The result of ${key} was not written: ${table.name} has one under a token newer than ${token}.`;
        throw new LockError('LOCK_LOST', says, { lockName: key, reason: 'taken-over' });
      }
      // The result is there: rows that stay for now are removed by a later write.
      const sweep = `DELETE FROM ${table.name} WHERE ends_at < ${NOW} - ${FENCE_MS} ORDER BY ends_at LIMIT ${SWEPT}`;
      await table.write(sweep).catch(() => undefined);
    },
  };
}

function nameOf(key: string): string {
  return sqlText(key, 'mysqlResults(): a key');
}
