import type { AcquireRequest, Call, Grant } from '@locks/core/backend';
import type { Statements } from '../pool/statements.ts';

/** A grant that was found uncontended: so is its release, as long as nobody has queued meanwhile. */
interface UncontendedGrant extends Grant {
  readonly uncontended: true;
}

/**
 * The two statements of an exclusive lock that nobody else wants, without the functions of the schema around them: they
 * cost the server a third of these. Where they change nothing, nothing was decided, and the functions are asked.
 */
export class Uncontended {
  readonly #statements: Statements;
  readonly #insert: string;
  readonly #delete: string;

  constructor(statements: Statements, schema: string) {
    this.#statements = statements;
    // The token was drawn before the insert, which may have waited for another holder to come and go.
    this.#insert = `INSERT INTO ${schema}.locks (name, queued, stolen, id, token, granted_at, expires_at, label)
VALUES ($1, false, 0, $2, nextval('${schema}.numbers'), clock_timestamp(), clock_timestamp() + $3 * interval '1 millisecond', $4)
ON CONFLICT (name) DO NOTHING
RETURNING CASE WHEN pg_sequence_last_value('${schema}.numbers') = token THEN token ELSE ${schema}.draw_again(name) END`;
    // An enqueue under way holds this row: the conditions are looked at again when that is done (see 20-release.sql).
    this.#delete = `DELETE FROM ${schema}.locks
WHERE name = $1 AND id = $2 AND NOT queued AND expires_at > clock_timestamp()`;
  }

  /** The grant, or `undefined` when there is a row of this name already. */
  async attempt(
    request: AcquireRequest,
    name: Buffer,
    call: Call,
    givenUp: () => boolean,
  ): Promise<UncontendedGrant | undefined> {
    const values = [name, request.acquisitionId, request.ttlMs, request.label];
    const { rows, sentAt } = await this.#statements.run(this.#insert, values, call, givenUp);
    const token = rows[0]?.[0];
    if (token === undefined || token === null) return undefined;
    return { request, fencingToken: BigInt(token), countedFrom: sentAt, uncontended: true };
  }

  /** Whether it was held, and is now free. */
  async release(grant: Grant, name: Buffer, call: Call): Promise<boolean> {
    const { count } = await this.#statements.run(this.#delete, [name, grant.request.acquisitionId], call);
    return count === 1;
  }
}

export function isUncontended(grant: Grant): boolean {
  return (grant as Partial<UncontendedGrant>).uncontended === true;
}
