/** The two halves of a key as `pg_locks` shows them. */
export function halvesOf(key: string): readonly [classid: string, objid: string] {
  const bits = BigInt.asUintN(64, BigInt(key));
  return [String(bits >> 32n), String(bits & 0xffff_ffffn)];
}

/** The condition for rows of `pg_locks` of the lock with these halves, in whatever database. */
export function isLock(classid: string, objid: string): string {
  return `locktype OPERATOR(pg_catalog.=) 'advisory' AND objsubid OPERATOR(pg_catalog.=) 1::smallint
  AND classid OPERATOR(pg_catalog.=) ${classid}::pg_catalog.oid AND objid OPERATOR(pg_catalog.=) ${objid}::pg_catalog.oid`;
}

/** The expression for the number of the database of the session. */
export const THIS_DATABASE = `(
  SELECT oid FROM pg_catalog.pg_database WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database())`;

/** The condition for rows of `pg_locks` of the lock of this database whose halves are the first two parameters. */
export const IS_THIS_LOCK = `${isLock('$1', '$2')} AND database OPERATOR(pg_catalog.=) ${THIS_DATABASE}`;
