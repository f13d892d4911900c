import { hash } from 'node:crypto';

// setup: import { advisoryKey } from '@locks/postgres'; import { Client } from 'pg';
// setup: const client = new Client();
/**
 * The 64-bit key of a name: the first eight bytes of the SHA-256 of its UTF-8 bytes, as a signed big-endian number. The
 * leases of `postgresAdvisoryBackend` exclude whoever calls `pg_advisory_lock(key)` on it, in any language, and the other
 * way round.
 *
 * @example
 * ```ts
 * await client.query('SELECT pg_try_advisory_lock($1)', [advisoryKey('sku:42')]);
 * ```
 */
export function advisoryKey(name: string): bigint {
  return hash('sha256', name, 'buffer').readBigInt64BE(0);
}
