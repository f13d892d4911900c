import { type OnceRecord, readOptions, refuseNewerSlotEntry, type SlotEntry } from '@locks/core/backend';
import { SCHEMA_TABLE } from '../lease/options.ts';
import { makeTable } from './make-table.ts';
import { runnerOf, type SqlClient } from '../transaction/sql-client.ts';

/** The options of `postgresRecord`. */
export interface PostgresRecordOptions {
  /**
   * The schema of the table `once_slots`. Schema and table are made by the first `read`, unless they exist.
   * @defaultValue `'locks'`
   */
  readonly schema?: string;
}

/** All columns as text, whatever parsers the application has set on its client. */
interface Row {
  readonly slot: string;
  readonly state: SlotEntry['state'];
  readonly token: string;
  readonly label: string;
  readonly at: string;
  readonly version: string;
}

const COLUMNS =
  'job text PRIMARY KEY, slot text NOT NULL, state text NOT NULL, token bigint NOT NULL, label text NOT NULL, ' +
  'at bigint NOT NULL, version smallint NOT NULL DEFAULT 1';

// setup: import { createLocks } from '@locks/core'; import { day, once } from '@locks/once'; import { postgresLeaseBackend, postgresRecord } from '@locks/postgres'; import { Pool } from 'pg';
// setup: const pool = new Pool(); declare function sendInvoices(token: bigint): Promise<void>;
/**
 * The record in which `once` of `@locks/once` keeps the slots that were done: a row for each job in the table `once_slots`. The locks may
 * be in another store.
 *
 * @param client - a pool of `pg`, the `sql` of postgres.js, a PGlite, or a function `(text, values) => rows`
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad client or option; its functions throw errors of the client as they are, and
 * `LOCK_UNSUPPORTED` for an entry of a newer version
 * @example
 * ```ts
 * const locks = createLocks(postgresLeaseBackend({ pool }));
 * const options = { slot: day(), atMostMs: 600_000, retry: 'next-machine', record: postgresRecord(pool) } as const;
 * await once(locks, 'invoices', options, ({ fencingToken }) => sendInvoices(fencingToken));
 * ```
 */
export function postgresRecord(client: SqlClient, options?: PostgresRecordOptions): OnceRecord {
  const run = runnerOf('postgresRecord()', client);
  const { schema } = readOptions('postgresRecord()', options, SCHEMA_TABLE);
  const table = `${schema}.once_slots`;
  return {
    async read(job) {
      const rows = await run(
        `SELECT slot, state, token::pg_catalog.text, label, at::pg_catalog.text, version::pg_catalog.text FROM ${table} WHERE job = $1`,
        [job],
      ).catch(makeTable(run, schema, table, COLUMNS));
      const row = rows[0] as unknown as Row | undefined;
      if (row === undefined) return undefined;
      const { slot, state, token, label, at, version } = row;
      refuseNewerSlotEntry(Number(version));
      return { slot, state, token: BigInt(token), label, at: Number(at) };
    },
    async write(job, { slot, state, token, label, at }) {
      // The number of rows is a column, since not every library tells it otherwise.
      const [row] = await run(
        `WITH written AS (
           INSERT INTO ${table} AS present (job, slot, state, token, label, at) VALUES ($1, $2, $3, $4, $5, $6)
           ON CONFLICT (job) DO UPDATE SET slot = excluded.slot, state = excluded.state, token = excluded.token,
             label = excluded.label, at = excluded.at
           WHERE present.token <= excluded.token RETURNING 1)
         SELECT pg_catalog.count(*)::pg_catalog.text AS written FROM written`,
        [job, slot, state, String(token), label, String(at)],
      );
      return Number(row?.['written']) === 1;
    },
  };
}
