import type { OnceRecord } from '@locks/once';
import pg from 'pg';
import { entryOfRow, type SlotRow } from './sql-rows.ts';

const TIMES = { connectionTimeoutMillis: 5_000, query_timeout: 10_000 };
const UNDEFINED_TABLE = '42P01';

/**
 * The record in the table `once_slots` of a schema. Each call has a connection of its own: a job may take hours between two.
 *
 * @param schema - the schema of the lease table, whose backend has checked it
 */
export function postgresRecord(connectionString: string, schema = 'locks'): OnceRecord {
  const table = `"${schema}".once_slots`;
  const use = async <T>(work: (client: pg.Client) => Promise<T>): Promise<T> => {
    const client = new pg.Client({ connectionString, ...TIMES });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return await work(client);
    } finally {
      await client.end().catch(() => undefined);
    }
  };
  return {
    read: (job) =>
      use(async (client) => {
        try {
          const { rows } = await client.query<SlotRow>(`SELECT * FROM ${table} WHERE job = $1`, [job]);
          return entryOfRow(rows[0]);
        } catch (error) {
          if ((error as { readonly code?: unknown }).code !== UNDEFINED_TABLE) throw error;
          await createTable(client, table);
          return undefined;
        }
      }),
    write: (job, { slot, state, token, label, at }) =>
      use(async (client) => {
        const { rowCount } = await client.query(
          `INSERT INTO ${table} AS present (job, slot, state, token, label, at) VALUES ($1, $2, $3, $4, $5, $6)
           ON CONFLICT (job) DO UPDATE SET slot = excluded.slot, state = excluded.state, token = excluded.token,
             label = excluded.label, at = excluded.at
           WHERE present.token <= excluded.token`,
          [job, slot, state, String(token), label, at],
        );
        return rowCount === 1;
      }),
  };
}

/** `IF NOT EXISTS` alone may fail when two sessions create the table at the same time. */
async function createTable(client: pg.Client, table: string): Promise<void> {
  await client.query('BEGIN');
  await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`@locks/cli ${table}`]);
  await client.query(
    `CREATE TABLE IF NOT EXISTS ${table} (job text PRIMARY KEY, slot text NOT NULL, state text NOT NULL,
      token bigint NOT NULL, label text NOT NULL, at bigint NOT NULL)`,
  );
  await client.query('COMMIT');
}
