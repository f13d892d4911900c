import { oneOf, optional, type OptionTable, readOptions } from '@locks/core/backend';
import { readConnectionString } from '../driver/connection-string.ts';
import { quoteSchema } from '../driver/quote-schema.ts';

/** The options of `postgresLeaseBackend`, on every driver. */
export interface PostgresLeaseOptions {
  /**
   * The schema of the tables and functions: letters, digits, `_` and `-`. Processes that share locks use the same schema.
   *
   * @defaultValue `'locks'`
   */
  readonly schema?: string;
  /**
   * The way in which waiters learn of their turn.
   *
   * - `true`: by `LISTEN`, on one more connection to the pool's address, which the first waiter opens. If the backend finds a
   *   pooler in between, it emits a process warning and polls.
   * - `{ url }`: by `LISTEN`, on a direct connection to the server past the pooler.
   * - `false`: by polling. While somebody waits, one statement every 100 ms asks for all waiters.
   *
   * @defaultValue true
   */
  readonly listen?: boolean | { readonly url: string };
  /**
   * Whether the first call may create the schema, or bring it up to date. `false`: `prepare()` of the locks does, or you, by
   * `schemaStatements()`.
   *
   * @defaultValue true
   */
  readonly autoPrepare?: boolean;
}

export interface CheckedLeaseOptions {
  /** The schema, quoted. */
  readonly schema: string;
  readonly listen: boolean | { readonly url: string };
  readonly autoPrepare: boolean;
}

/** The option of all that has a schema. */
export const SCHEMA_TABLE = { schema: optional(quoteSchema, '"locks"') };

const readFlag = oneOf(true, false);
export const LEASE_TABLE = {
  ...SCHEMA_TABLE,
  listen: optional<CheckedLeaseOptions['listen']>(readListen, true),
  autoPrepare: optional(readFlag, true),
} satisfies OptionTable<PostgresLeaseOptions>;

function readListen(value: unknown, what: string): CheckedLeaseOptions['listen'] {
  if (typeof value !== 'object') return readFlag(value, what);
  return readOptions(what, value, { url: readConnectionString });
}
