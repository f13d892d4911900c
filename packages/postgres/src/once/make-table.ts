import type { SqlExecutor } from '../transaction/sql-client.ts';

const UNDEFINED_TABLE = '42P01';

/** What follows a failed read: where the table is missing, it is made, and has no rows. */
export function makeTable(
  run: SqlExecutor,
  schema: string,
  table: string,
  columns: string,
  more = '',
): (error: unknown) => Promise<[]> {
  return async (error) => {
    if ((error as { readonly code?: unknown } | null)?.code !== UNDEFINED_TABLE) throw error;
    // One statement, so that it also works through a pooler. `IF NOT EXISTS` alone may fail where two sessions create at the same time.
    await run(
      `DO $do$ BEGIN
      PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('@locks/once ${table}', 0));
      CREATE SCHEMA IF NOT EXISTS ${schema};
      CREATE TABLE IF NOT EXISTS ${table} (${columns});
      ${more}
    END $do$`,
      [],
    );
    return [];
  };
}
