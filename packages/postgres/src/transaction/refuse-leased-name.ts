/** The SQL state of {@link refuseLeasedName}. */
export const IN_LEASE_TABLE = 'LK003';

/**
 * A statement that fails if a lease table of the database, in whatever schema, has a row of this name. It needs no privilege,
 * and costs two look-ups in the catalog where there is no such table. `17`: the type bytea.
 */
export function refuseLeasedName(name: string): string {
  return `DO $locks$
DECLARE
  v_schema pg_catalog.text;
  v_is_leased pg_catalog.bool;
BEGIN
  FOR v_schema IN
    SELECT namespace.nspname FROM pg_catalog.pg_class locks
      JOIN pg_catalog.pg_class waiters ON waiters.relnamespace OPERATOR(pg_catalog.=) locks.relnamespace
      JOIN pg_catalog.pg_attribute name ON name.attrelid OPERATOR(pg_catalog.=) locks.oid
      JOIN pg_catalog.pg_namespace namespace ON namespace.oid OPERATOR(pg_catalog.=) locks.relnamespace
    WHERE locks.relname OPERATOR(pg_catalog.=) 'locks' AND waiters.relname OPERATOR(pg_catalog.=) 'waiters'
      AND name.attname OPERATOR(pg_catalog.=) 'name' AND name.atttypid OPERATOR(pg_catalog.=) 17::pg_catalog.oid
      AND pg_catalog.has_schema_privilege(namespace.oid, 'USAGE') AND pg_catalog.has_table_privilege(locks.oid, 'SELECT')
  LOOP
    EXECUTE pg_catalog.format('SELECT EXISTS (SELECT 1 FROM %I.locks WHERE name OPERATOR(pg_catalog.=) $1)', v_schema)
      INTO v_is_leased USING pg_catalog.decode('${Buffer.from(name).toString('hex')}', 'hex');
    IF v_is_leased THEN
      RAISE EXCEPTION 'the lease table of the schema % has this name', v_schema USING ERRCODE = '${IN_LEASE_TABLE}';
    END IF;
  END LOOP;
END $locks$`;
}
