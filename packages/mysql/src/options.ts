import {
  invalidArgument,
  milliseconds,
  mustBe,
  oneOf,
  optional,
  type OptionTable,
  readOptions,
  text,
} from '@locks/core/backend';
import type { Pool as CallbackPool } from 'mysql2';
import type { Pool as PromisePool } from 'mysql2/promise';

interface CommonOptions {
  /**
   * The database of the tables; it must exist.
   *
   * @defaultValue the one that the connections use
   */
  readonly database?: string;
  /**
   * The prefix of the names of the tables: `A-Z a-z 0-9 _ $`, at most 48 characters. Locks with different prefixes have
   * nothing in common.
   *
   * @defaultValue `'locks_'`
   */
  readonly tablePrefix?: string;
  /**
   * Whether missing tables are created, and older ones migrated, at the first call. With `false` the statements of
   * {@link schemaStatements} must have been run before.
   *
   * @defaultValue `true`
   */
  readonly createTables?: boolean;
  /**
   * The longest pause in milliseconds between two polls of the tables while somebody waits, 50 to 1000.
   *
   * @defaultValue 800
   */
  readonly maxPollMs?: number;
  /**
   * The time limit of a statement in milliseconds, 100 to 60000, including the wait for a connection. After it the connection
   * is destroyed, and the call fails or is repeated.
   *
   * @defaultValue 5000
   */
  readonly statementTimeoutMs?: number;
}

/** Either a pool of yours, which the backend never ends, or a URI, for a small pool of the backend's own. */
export type MysqlBackendOptions = CommonOptions &
  (
    | {
        /** A pool of `mysql2` or of `mysql2/promise`. */
        readonly pool: CallbackPool | PromisePool;
        readonly uri?: never;
      }
    | {
        /** `mysql://user:password@host:port/database`, with the options of mysql2 as its query. */
        readonly uri: string;
        readonly pool?: never;
      }
  );

export interface CheckedMysqlOptions {
  readonly pool: CallbackPool | undefined;
  readonly uri: string | undefined;
  readonly database: string | undefined;
  readonly tablePrefix: string;
  readonly createTables: boolean;
  readonly maxPollMs: number;
  readonly statementTimeoutMs: number;
}

/** Options of the tables. */
export const TABLES_TABLE = {
  database: optional(text('the name of a database, without backquotes', /^[^\0`]{1,64}$/u)),
  tablePrefix: optional(text('0 to 48 characters of A-Z a-z 0-9 _ $', /^[A-Za-z0-9_$]{0,48}$/), 'locks_'),
};

const TABLE = {
  pool: optional(callbackPool),
  uri: optional(uriOf),
  ...TABLES_TABLE,
  createTables: optional(oneOf(true, false), true),
  maxPollMs: optional(milliseconds(50, 1_000), 800),
  statementTimeoutMs: optional(milliseconds(100, 60_000), 5_000),
} satisfies OptionTable<MysqlBackendOptions>;

export function checkOptions(options: MysqlBackendOptions): CheckedMysqlOptions {
  const checked = readOptions('mysqlBackend()', options, TABLE);
  if ((checked.pool === undefined) === (checked.uri === undefined)) {
    const given = checked.pool === undefined ? 'neither' : 'both';
    throw invalidArgument(`mysqlBackend() takes either pool or uri, and ${given} was given.`);
  }
  return checked;
}

/** The callback pool under both kinds of pools. A single connection, a cluster, or a pool of the old `mysql` package is refused. */
export function callbackPool(given: unknown, what: string): CallbackPool {
  const outer = given as { readonly pool?: unknown } | null;
  const inner = typeof outer === 'object' && outer !== null && outer.pool !== undefined ? outer.pool : given;
  const pool = inner as Partial<CallbackPool> | null;
  const isPool =
    typeof pool === 'object' &&
    pool !== null &&
    typeof pool.getConnection === 'function' &&
    typeof pool.query === 'function' &&
    typeof pool.promise === 'function';
  if (isPool) return pool as CallbackPool;
  const allowed =
    'what createPool() of mysql2 or mysql2/promise gives (no single connection, no PoolCluster, no pool of the package mysql)';
  throw mustBe(what, allowed, given);
}

function uriOf(value: unknown, what: string): string {
  if (typeof value === 'string' && URL.canParse(value) && /^(mysql|mariadb):$/.test(new URL(value).protocol))
    return value;
  // The value is not shown: it may hold a password.
  throw invalidArgument(`${what} must be a URL such as mysql://user:password@host:3306/database.`);
}
