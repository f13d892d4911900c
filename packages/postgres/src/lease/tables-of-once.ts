/** A table that `once` or `coalesce` keeps beside the locks. */
export interface TableOfOnce {
  /** In SQL, with its schema. */
  readonly name: string;
  /** Makes the table in a schema that is there, unless it exists. */
  readonly create: string;
}

/** The table of `postgresSlots()`. */
export function onceSlots(schema: string): TableOfOnce {
  const name = `${schema}.once_slots`;
  const columns =
    'job text PRIMARY KEY, slot text NOT NULL, state text NOT NULL, token bigint NOT NULL, label text NOT NULL, ' +
    'at bigint NOT NULL, version smallint NOT NULL DEFAULT 1';
  return { name, create: `CREATE TABLE IF NOT EXISTS ${name} (${columns});` };
}

/** The table of `postgresResults()`. */
export function sharedResults(schema: string): TableOfOnce {
  const name = `${schema}.shared_results`;
  const columns =
    'key text PRIMARY KEY, value text NOT NULL, token bigint NOT NULL, ends_at timestamptz NOT NULL';
  const index = `CREATE INDEX IF NOT EXISTS shared_results_ends_at ON ${name} (ends_at);`;
  return { name, create: `CREATE TABLE IF NOT EXISTS ${name} (${columns});\n${index}` };
}

/**
 * The statement that all who make the table send before, in one transaction with it: `IF NOT EXISTS` alone may fail where two sessions
 * create at the same time.
 */
export function creationLock({ name }: TableOfOnce): string {
  return `pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('@locks/once ${name}', 0))`;
}
