import type { SlotStore } from '@locks/once';
import { postgresSlots } from '@locks/postgres';
import pg from 'pg';

const TIMES = { connectionTimeoutMillis: 5_000, query_timeout: 10_000 };

/**
 * The slot store of `@locks/postgres` in a database. Each statement has a connection of its own: work may take hours between two.
 *
 * @param schema - the schema of the lease table, whose backend has checked it
 */
export function postgresSlotsAt(connectionString: string, schema: string | undefined): SlotStore {
  const run = async (text: string, values: readonly unknown[]): Promise<unknown> => {
    const client = new pg.Client({ connectionString, ...TIMES });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return await client.query(text, [...values]);
    } finally {
      await client.end().catch(() => undefined);
    }
  };
  return postgresSlots(run, schema === undefined ? {} : { schema });
}
