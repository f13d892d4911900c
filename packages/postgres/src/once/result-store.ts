import { LockError } from '@locks/core';
import { readOptions, type ResultStore } from '@locks/core/backend';
import { SCHEMA_TABLE } from '../lease/options.ts';
import { sharedResults } from '../lease/tables-of-once.ts';
import { outsideRunnerOf } from '../transaction/outside-runner.ts';
import type { SqlClient } from '../transaction/sql-client.ts';
import { makeTable } from './make-table.ts';
import { fromColumn, toColumn } from './nul-text.ts';

/** The options of `postgresResults`. */
export interface PostgresResultsOptions {
  /**
   * The schema of the table `shared_results`. Schema and table are made by the first `get`, unless they exist, or by `prepare()` of a
   * `postgresLeaseBackend` with the same schema.
   * @defaultValue `'locks'`
   */
  readonly schema?: string;
}

/** A row is kept so much longer than its result, since its token refuses writers that lost their lock. */
const FENCE = "INTERVAL '1 hour'";
/** A write removes at most so many old rows: more than it adds. */
const SWEPT = 10;

// setup: import { createLocks } from '@locks/core'; import { coalesce } from '@locks/once'; import { postgresLeaseBackend, postgresResults } from '@locks/postgres'; import { Pool } from 'pg';
// setup: const pool = new Pool(); declare function fetchPrices(signal: AbortSignal): Promise<Record<string, number>>;
/**
 * The store in which `coalesce` of `@locks/once` shares results: a row for each key in the table `shared_results`, which ends by the clock of the
 * server. Its fencing token is kept for an hour more; each write removes a few older rows.
 *
 * @param client - a pool of `pg`, the `sql` of postgres.js, a PGlite, or a function `(text, values) => rows`
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad client or option; its functions throw errors of the client as they are, and `set`
 * `LOCK_LOST` with reason `taken-over` when a newer token wrote before
 * @example
 * ```ts
 * const locks = createLocks(postgresLeaseBackend(pool));
 * const options = { store: postgresResults(pool), shareForMs: 5_000 };
 * const prices = await coalesce(locks, 'prices', ({ signal }) => fetchPrices(signal), options);
 * ```
 */
export function postgresResults(client: SqlClient, options?: PostgresResultsOptions): ResultStore {
  const run = outsideRunnerOf('postgresResults()', client);
  const { schema } = readOptions('postgresResults()', options, SCHEMA_TABLE);
  const results = sharedResults(schema);
  const table = results.name;
  return {
    async get(key) {
      const read = `SELECT value FROM ${table} WHERE key = $1 AND ends_at > pg_catalog.clock_timestamp()`;
      const [row] = await run(read, [toColumn(key)]).catch(makeTable(run, schema, results));
      const value = row?.['value'] as string | undefined;
      return value === undefined ? undefined : fromColumn(value);
    },
    async set(key, value, token, ttlMs) {
      // The number of rows is a column, since not every library tells it otherwise.
      const [row] = await run(
        `WITH old AS (
           SELECT key FROM ${table} WHERE ends_at < pg_catalog.clock_timestamp() - ${FENCE} AND key <> $1
           ORDER BY ends_at LIMIT ${SWEPT} FOR UPDATE SKIP LOCKED),
         swept AS (DELETE FROM ${table} WHERE key IN (SELECT key FROM old)),
         written AS (
           INSERT INTO ${table} AS present (key, value, token, ends_at)
           VALUES ($1, $2, $3, pg_catalog.clock_timestamp() + $4::pg_catalog.float8 * INTERVAL '1 millisecond')
           ON CONFLICT (key) DO UPDATE SET value = excluded.value, token = excluded.token, ends_at = excluded.ends_at
           WHERE present.token <= excluded.token RETURNING 1)
         SELECT pg_catalog.count(*)::pg_catalog.text AS written FROM written`,
        [toColumn(key), toColumn(value), String(token), String(ttlMs)],
      );
      if (Number(row?.['written']) === 1) return;
      const says = `The result of ${key} was not written: ${table} has one under a token newer than ${token}.`;
      throw new LockError('LOCK_LOST', says, { lockName: key, reason: 'taken-over' });
    },
  };
}
