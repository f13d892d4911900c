export type LeaseSql = ReturnType<typeof leaseSql>;

/**
 * The statements of a backend. Each calls a function of the schema: see migrations/1.
 *
 * @param schema - quoted
 */
export function leaseSql(schema: string) {
  const columns = `pg_catalog.encode(name, 'hex'), role, id, kind, weight, permits, label, token, age_ms, left_ms`;
  return {
    acquire: `SELECT ${schema}.acquire($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    acquireInOrder: `SELECT ${schema}.acquire_in_order($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    acquireMany: `SELECT ${schema}.acquire_many($1, $2, $3, $4, $5, $6, $7, $8)`,
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
