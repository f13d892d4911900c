import { type AcquireRequest, type Call, type Grant, PRIORITIES } from '@locks/core/backend';
import type { PostgresStatements } from '../pool/postgres-statements.ts';
import { nameBytes } from './name-bytes.ts';

/** A grant of the plain insert. Its release is a plain delete, as long as nobody has queued meanwhile. */
interface UncontendedGrant extends Grant {
  readonly uncontended: true;
}

/**
 * The two plain statements of an exclusive lock that nobody else wants. They cost the server a third of what the functions
 * of the schema cost. A statement that changes no row has decided nothing, and the function is called next.
 */
export class UncontendedStatements {
  readonly #statements: PostgresStatements;
  readonly #insert: string;
  /** Changes one row if the lease was live and nobody waits: its lock is now free. */
  readonly delete: string;

  constructor(statements: PostgresStatements, schema: string) {
    this.#statements = statements;
    const numbers = `'${schema}.numbers'::pg_catalog.regclass`;
    // The token is drawn before the insert, which may wait until other holders have come and gone. It is drawn again then.
    this.#insert = `INSERT INTO ${schema}.locks (name, queued, stolen, id, token, granted_at, expires_at, label)
VALUES ($1, false, 0, $2, pg_catalog.nextval(${numbers}), pg_catalog.clock_timestamp(), pg_catalog.clock_timestamp()
  OPERATOR(pg_catalog.+) ($3::double precision OPERATOR(pg_catalog.*) interval '1 millisecond'), $4)
ON CONFLICT (name) DO NOTHING
RETURNING CASE WHEN pg_catalog.pg_sequence_last_value(${numbers}) OPERATOR(pg_catalog.=) token THEN token
  ELSE ${schema}.draw_again(name) END`;
    // An enqueue under way locks this row. PostgreSQL checks the conditions again once that has committed (20-release.sql).
    this.delete = `DELETE FROM ${schema}.locks
WHERE name OPERATOR(pg_catalog.=) $1 AND id OPERATOR(pg_catalog.=) $2 AND NOT queued
  AND expires_at OPERATOR(pg_catalog.>) pg_catalog.clock_timestamp()`;
  }

  /**
   * The grant, or `undefined` when there is a row of this name already.
   *
   * @param take - called when a connection is free: whether to send the insert
   */
  async attempt(
    request: AcquireRequest,
    call: Call,
    take: () => boolean,
  ): Promise<UncontendedGrant | undefined> {
    const { resource, acquisitionId, ttlMs, label } = request;
    const result = await this.#statements.send(() => {
      if (!take()) return undefined;
      const sentAt = call.now();
      const values = [nameBytes(resource), acquisitionId, ttlMs, label];
      return { text: this.#insert, values, sentAt, leftMs: call.deadline - sentAt };
    }, PRIORITIES.acquire);
    const token = result?.rows[0]?.[0];
    if (result === undefined || token === undefined || token === null) return undefined;
    return { request, fencingToken: BigInt(token), countedFrom: result.sentAt, uncontended: true };
  }
}

export function isUncontended(grant: Grant): boolean {
  return (grant as Partial<UncontendedGrant>).uncontended === true;
}
