import { optional, type OptionTable, readOptions, wholeNumber } from '@locks/core/backend';
import { quoteSchema } from '../driver/quote-schema.ts';

/** The options of `postgresAdvisoryBackend`, on every driver. */
export interface PostgresAdvisoryOptions {
  /**
   * The silence after which the server ends a session, and with it all its locks: so long a frozen process or a lost machine
   * blocks the others. Its holders lose their leases after two thirds of it. 900 to 600 000 milliseconds.
   *
   * @defaultValue 15 000
   */
  readonly sessionTimeoutMs?: number;
  /**
   * The most connections that this backend opens, 1 to 100. One holds any number of locks; each of the others waits in
   * the server's queue for one lock that another process holds.
   *
   * @defaultValue 10
   */
  readonly maxConnections?: number;
  /**
   * Gives every lease a durable fencing token from a sequence in this schema. The backend creates the schema and the
   * sequence if they are missing. Without this option there are no tokens, and nothing is written to the database.
   *
   * @defaultValue no tokens
   */
  readonly fencing?: { readonly schema: string };
}

export interface CheckedAdvisoryOptions {
  readonly sessionTimeoutMs: number;
  readonly maxConnections: number;
  /** The schema of the sequence is quoted. */
  readonly fencing: { readonly schema: string } | undefined;
}

export const ADVISORY_TABLE = {
  // Below 900 ms a pause of a garbage collector could cost every lock.
  sessionTimeoutMs: optional(wholeNumber(900, 600_000), 15_000),
  maxConnections: optional(wholeNumber(1, 100), 10),
  fencing: optional((value, what) => readOptions(what, value, { schema: quoteSchema })),
} satisfies OptionTable<PostgresAdvisoryOptions>;
