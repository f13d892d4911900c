import { hash } from 'node:crypto';

/**
 * The 64-bit key of a name: the first eight bytes of the SHA-256 of its UTF-8 bytes, as a signed big-endian number.
 * What `pg_advisory_lock(key)` takes on it, in whatever language, excludes us and is excluded.
 *
 * @example
 * ```ts
 * await client.query('SELECT pg_try_advisory_lock($1)', [advisoryKey('sku:42')]);
 * ```
 */
export function advisoryKey(name: string): bigint {
  return hash('sha256', name, 'buffer').readBigInt64BE(0);
}

/** The two halves of a key as `pg_locks` shows them. */
export function halvesOf(key: string): readonly [classid: string, objid: string] {
  const bits = BigInt.asUintN(64, BigInt(key));
  return [String(bits >> 32n), String(bits & 0xffff_ffffn)];
}
