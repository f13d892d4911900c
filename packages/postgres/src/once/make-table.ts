import { creationLock, type TableOfOnce } from '../lease/tables-of-once.ts';
import type { SqlExecutor } from '../transaction/sql-client.ts';

const UNDEFINED_TABLE = '42P01';

/** What follows a failed read: where the table is missing, it is made, and has no rows. */
export function makeTable(
  run: SqlExecutor,
  schema: string,
  table: TableOfOnce,
): (error: unknown) => Promise<[]> {
  return async (error) => {
    if ((error as { readonly code?: unknown } | null)?.code !== UNDEFINED_TABLE) throw error;
    // One statement, so that it also works through a pooler. The server learns what others created when it opens a catalog, and not
    // when it is given an advisory lock.
    await run(
      `DO $do$ BEGIN
      PERFORM ${creationLock(table)};
      PERFORM 1 FROM pg_catalog.pg_namespace LIMIT 1;
      CREATE SCHEMA IF NOT EXISTS ${schema};
      ${table.create}
    END $do$`,
      [],
    );
    return [];
  };
}
