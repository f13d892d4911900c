import { ask } from '../driver/ask.ts';
import type { Connection } from '../driver/postgres-driver.ts';
import { codeOf } from '../driver/server-error.ts';
import { advisoryKey } from './advisory-key.ts';

/** The durable source of fencing tokens: one sequence for all names. */
export class TokenSequence {
  /** The SQL expression of the next token, for a statement that has just taken a lock. */
  readonly expression: string;
  readonly #schema: string;
  readonly #sequence: string;
  #prepared = false;

  constructor(schema: string) {
    this.#schema = schema;
    this.#sequence = `${schema}.advisory_fencing_token`;
    this.expression = `pg_catalog.nextval('${this.#sequence}'::pg_catalog.regclass)`;
  }

  /** Creates the sequence if it is missing. Several processes may do so at once. Where it exists, no privilege is needed. */
  async prepare(connection: Connection): Promise<void> {
    if (this.#prepared) return;
    const [[found] = []] = await ask(connection, {
      text: 'SELECT pg_catalog.to_regclass($1::pg_catalog.text)',
      values: [this.#sequence],
    });
    if (found === null) {
      const created = ask(connection, {
        text: `BEGIN;
         SELECT pg_catalog.pg_advisory_xact_lock('${advisoryKey(`@locks/postgres create ${this.#sequence}`)}'::bigint);
         CREATE SCHEMA IF NOT EXISTS ${this.#schema};
         CREATE SEQUENCE IF NOT EXISTS ${this.#sequence} AS bigint;
         COMMIT`,
      });
      await created.catch((error: unknown) => {
        throw this.#explained(error);
      });
    }
    this.#prepared = true;
  }

  /** Adds the purpose of the missing privilege: the server's message names only the database or the schema. */
  #explained(error: unknown): unknown {
    const code = codeOf(error);
    if (code !== '42501') return error;
    const explained =
      `${(error as Error).message}. Fencing tokens need the sequence ${this.#sequence}: let a role with the privilege run CREATE SCHEMA IF NOT EXISTS ` +
      `${this.#schema}; CREATE SEQUENCE ${this.#sequence} AS bigint; and grant this one USAGE on both`;
    return Object.assign(new Error(explained, { cause: error }), { code });
  }
}
