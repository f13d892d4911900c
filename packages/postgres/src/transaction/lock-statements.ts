/** The SQL state of a name that a lease table has. */
export const IN_LEASE_TABLE = 'LK003';
/** The SQL state of a lock that somebody else holds. */
export const LOCK_NOT_AVAILABLE = '55P03';

/** What {@link lockStatement} says when the transaction has the lock. */
export const GRANTED = 'granted';

/**
 * Reads the outcome of the statement before: {@link GRANTED}, or an SQL state and a message. It is empty outside of a transaction,
 * or on another connection, where the lock ended with its own statement.
 */
export const readOutcome = `SELECT pg_catalog.current_setting('locks.outcome', true) AS outcome`;

/**
 * A statement that takes an advisory lock for the transaction, and tells the outcome in a setting that ends with the transaction. No
 * failure is an error of the statement, which would abort the transaction: the inner block is a savepoint, so that the lock, the
 * time limit and whatever failed are undone together.
 *
 * A name that a lease table of the database has, in whatever schema, is refused. That needs no privilege, and costs two look-ups in
 * the catalog where there is no such table. `17`: the type bytea.
 *
 * @param take - the SQL condition that takes the lock
 * @param limitMs - `lock_timeout` meanwhile; 0: no limit
 */
export function lockStatement(name: string, take: string, limitMs: number): string {
  const bytes = `pg_catalog.decode('${Buffer.from(name).toString('hex')}', 'hex')`;
  return `DO $locks$
DECLARE
  v_before pg_catalog.text := pg_catalog.current_setting('lock_timeout');
  v_outcome pg_catalog.text := '${GRANTED}';
  v_schema pg_catalog.text;
  v_is_leased pg_catalog.bool;
BEGIN
  BEGIN
    PERFORM pg_catalog.set_config('lock_timeout', '${limitMs}', true);
    IF NOT (${take}) THEN
      RAISE EXCEPTION USING MESSAGE = 'the lock is held', ERRCODE = '${LOCK_NOT_AVAILABLE}';
    END IF;
    FOR v_schema IN
      SELECT n.nspname FROM pg_catalog.pg_class l
        JOIN pg_catalog.pg_class w ON w.relnamespace OPERATOR(pg_catalog.=) l.relnamespace
        JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) l.oid
        JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) l.relnamespace
      WHERE l.relname OPERATOR(pg_catalog.=) 'locks' AND w.relname OPERATOR(pg_catalog.=) 'waiters'
        AND a.attname OPERATOR(pg_catalog.=) 'name' AND a.atttypid OPERATOR(pg_catalog.=) 17::pg_catalog.oid
        AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(l.oid, 'SELECT')
    LOOP
      EXECUTE pg_catalog.format('SELECT EXISTS (SELECT 1 FROM %I.locks WHERE name OPERATOR(pg_catalog.=) %L)', v_schema, ${bytes})
        INTO v_is_leased;
      IF v_is_leased THEN
        RAISE EXCEPTION USING MESSAGE = pg_catalog.format('the lease table of the schema %s has this name', v_schema),
          ERRCODE = '${IN_LEASE_TABLE}';
      END IF;
    END LOOP;
  EXCEPTION WHEN OTHERS OR query_canceled THEN
    v_outcome := pg_catalog.concat(SQLSTATE, ' ', SQLERRM);
  END;
  PERFORM pg_catalog.set_config('lock_timeout', v_before, true);
  PERFORM pg_catalog.set_config('locks.outcome', v_outcome, true);
END $locks$`;
}
