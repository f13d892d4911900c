import type pg from 'pg';
import { advisoryKey } from './advisory-key.ts';

/** The durable source of fencing tokens: one sequence for all names, which outlives every session and the server. */
export class TokenSequence {
  /** Of the next token, for a statement that has just taken a lock. */
  readonly expression: string;
  readonly #schema: string;
  readonly #sequence: string;
  #prepared = false;

  constructor(schema: string) {
    this.#schema = schema;
    this.#sequence = `${schema}.advisory_fencing_token`;
    this.expression = `nextval('${this.#sequence.replaceAll("'", "''")}')`;
  }

  /** Creates what is missing. Several processes may do so at once; who finds it needs no right to create anything. */
  async prepare(client: pg.Client): Promise<void> {
    if (this.#prepared) return;
    const { rows } = await client.query<{ found: boolean }>('SELECT to_regclass($1) IS NOT NULL AS found', [
      this.#sequence,
    ]);
    if (rows[0]?.found !== true) {
      await client.query(
        `BEGIN;
         SELECT pg_advisory_xact_lock(${advisoryKey(`@locks/postgres create ${this.#sequence}`)});
         CREATE SCHEMA IF NOT EXISTS ${this.#schema};
         CREATE SEQUENCE IF NOT EXISTS ${this.#sequence} AS int8;
         COMMIT`,
      );
    }
    this.#prepared = true;
  }
}
