import { oneOf, optional, type OptionTable, readOptions } from '@locks/core/backend';
import { readConnectionString } from '../driver/connection-string.ts';
import { quoteSchema } from '../driver/quote-schema.ts';

/** The settings of the backend on a lease table, on every driver. */
export interface PostgresLeaseSettings {
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
   * - `{ connectionString }`: by `LISTEN`, on a direct connection to the server past the pooler.
   * - `false`: by polling. While somebody waits, one statement every 100 ms asks for all waiters.
   *
   * @defaultValue true
   */
  readonly listen?: boolean | { readonly connectionString: string };
  /**
   * Whether the first call may create the schema, or bring it up to date. `false`: you do, with `migrateLeaseSchema` or
   * `leaseSchemaSql`.
   *
   * @defaultValue true
   */
  readonly migrate?: boolean;
}

export interface CheckedLeaseSettings {
  /** The schema, quoted. */
  readonly schema: string;
  readonly listen: boolean | { readonly connectionString: string };
  readonly migrate: boolean;
}

export const DEFAULT_SCHEMA = 'locks';

/** The options of `migrateLeaseSchema`, beside its source. */
export const SCHEMA_TABLE = { schema: optional(quoteSchema, `"${DEFAULT_SCHEMA}"`) };

const readFlag = oneOf(true, false);
export const LEASE_TABLE = {
  ...SCHEMA_TABLE,
  listen: optional<CheckedLeaseSettings['listen']>(readListen, true),
  migrate: optional(readFlag, true),
} satisfies OptionTable<PostgresLeaseSettings>;

function readListen(value: unknown, what: string): CheckedLeaseSettings['listen'] {
  if (typeof value !== 'object') return readFlag(value, what);
  return readOptions(what, value, { connectionString: readConnectionString });
}
