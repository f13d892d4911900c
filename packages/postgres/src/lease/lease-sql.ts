export type LeaseSql = ReturnType<typeof leaseSql>;

/**
 * The statements of a backend. Each calls a function of the schema (see migrations/1), except for the plain two of an
 * exclusive lock that nobody else wants: they cost the server a third of what the functions cost. A plain statement that
 * changes no row has decided nothing, and the function is called next.
 *
 * @param schema - quoted
 */
export function leaseSql(schema: string) {
  const columns = `pg_catalog.encode(name, 'hex'), role, id, kind, weight, permits, label, token, age_ms, left_ms`;
  const numbers = `'${schema}.numbers'::pg_catalog.regclass`;
  return {
    // At another isolation than read committed nothing is inserted, and the function refuses: a release could fail there.
    // The token is drawn before the insert, which may wait until other holders have come and gone. It is drawn again then.
    plainInsert: `INSERT INTO ${schema}.locks (name, queued, stolen, id, token, granted_at, expires_at, label)
SELECT $1::pg_catalog.bytea, false, 0, $2::pg_catalog.text, pg_catalog.nextval(${numbers}), pg_catalog.clock_timestamp(),
  pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+) ($3::double precision OPERATOR(pg_catalog.*) interval '1 millisecond'),
  $4::pg_catalog.text
WHERE pg_catalog.current_setting('transaction_isolation') OPERATOR(pg_catalog.=) 'read committed'
ON CONFLICT (name) DO NOTHING
RETURNING CASE WHEN pg_catalog.pg_sequence_last_value(${numbers}) OPERATOR(pg_catalog.=) token THEN token
  ELSE ${schema}.draw_again(name) END`,
    // Changes one row if the lease was live and nobody waits: its lock is now free. An enqueue under way locks this row, and
    // PostgreSQL checks the conditions again once that has committed (20-release.sql).
    plainDelete: `DELETE FROM ${schema}.locks
WHERE name OPERATOR(pg_catalog.=) $1 AND id OPERATOR(pg_catalog.=) $2 AND NOT queued
  AND expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp()`,
    acquire: `SELECT ${schema}.acquire($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    acquireInOrder: `SELECT ${schema}.acquire_in_order($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    acquireMany: `SELECT ${schema}.acquire_many($1, $2, $3, $4, $5, $6, $7, $8)`,
    adopt: `SELECT ${schema}.adopt($1, $2, $3, $4, $5)`,
    release: `SELECT ${schema}.release($1, $2, $3)`,
    releaseAll: `SELECT ${schema}.release_all($1, $2, $3)`,
    renew: `SELECT ${schema}.renew($1, $2, $3, $4)`,
    downgrade: `SELECT ${schema}.downgrade($1, $2, $3, $4)`,
    resize: `SELECT ${schema}.resize($1, $2, $3)`,
    forceRelease: `SELECT ${columns} FROM ${schema}.force_release($1, $2, $3)`,
    state: `SELECT ${columns} FROM ${schema}.state($1)`,
    /** The rows of `state` for holders alone. */
    holders: `SELECT ${columns} FROM ${schema}.state($1) WHERE role OPERATOR(pg_catalog.=) 'h'`,
    names: `SELECT pg_catalog.encode(name, 'hex') FROM ${schema}.names_from($1, $2, $3, $4) AS name`,
    sweep: `SELECT ${schema}.sweep()`,
  } as const;
}
