/** The statements of a backend: each a call of a function of the schema. See migrations/1. */
export interface LeaseSql {
  readonly acquire: string;
  readonly acquireMany: string;
  readonly release: string;
  readonly abandon: string;
  readonly renew: string;
  readonly downgrade: string;
  readonly resize: string;
  readonly forceRelease: string;
  readonly state: string;
  readonly names: string;
  readonly sweep: string;
}

/** `schema` is quoted. */
export function leaseSql(schema: string): LeaseSql {
  const columns = `encode(name, 'hex'), role, id, kind, weight, permits, label, token, age_ms, left_ms`;
  return {
    acquire: `SELECT ${schema}.acquire($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    acquireMany: `SELECT ${schema}.acquire_many($1, $2, $3, $4, $5, $6, $7, $8)`,
    release: `SELECT ${schema}.release($1, $2, $3)`,
    abandon: `SELECT ${schema}.abandon($1, $2, $3)`,
    renew: `SELECT ${schema}.renew($1, $2, $3, $4)`,
    downgrade: `SELECT ${schema}.downgrade($1, $2, $3, $4)`,
    resize: `SELECT ${schema}.resize($1, $2, $3)`,
    forceRelease: `SELECT ${columns} FROM ${schema}.force_release($1, $2, $3)`,
    state: `SELECT ${columns} FROM ${schema}.state($1)`,
    names: `SELECT encode(name, 'hex') FROM ${schema}.names_from($1, $2, $3, $4) AS name`,
    sweep: `SELECT ${schema}.sweep()`,
  };
}
