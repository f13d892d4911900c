import {
  invalidArgument,
  milliseconds,
  oneOf,
  optional,
  type OptionTable,
  readClient,
  readOptions,
  text,
} from '@locks/core/backend';
import type { Pool as CallbackPool } from 'mysql2';
import type { Pool as PromisePool } from 'mysql2/promise';

/** The options of `mysqlBackend`. */
export interface MysqlBackendOptions {
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
   * Whether the first call creates missing tables. `false`: `prepare()` of the locks does, or you, by {@link schemaStatements}.
   *
   * @defaultValue `true`
   */
  readonly autoPrepare?: boolean;
  /**
   * The longest pause in milliseconds between two polls of the tables while somebody waits, 50 to 1000.
   *
   * @defaultValue 800
   */
  readonly maxPollMs?: number;
  /**
   * The time limit of one request in milliseconds, 100 to 60000: of a statement, including the wait for a connection. After it the
   * connection is destroyed, and the call fails or is repeated.
   *
   * @defaultValue 5000
   */
  readonly requestTimeoutMs?: number;
}

/** A pool of `mysql2` or of `mysql2/promise`, which the backend never ends. */
export type MysqlPool = CallbackPool | PromisePool;

export interface CheckedMysqlOptions {
  readonly pool: CallbackPool | undefined;
  readonly url: string | undefined;
  readonly database: string | undefined;
  readonly tablePrefix: string;
  readonly autoPrepare: boolean;
  readonly maxPollMs: number;
  readonly requestTimeoutMs: number;
}

/** Options of the tables. */
export const TABLES_TABLE = {
  database: optional(text('the name of a database, without backquotes', /^[^\0`]{1,64}$/u)),
  tablePrefix: optional(text('0 to 48 characters of A-Z a-z 0-9 _ $', /^[A-Za-z0-9_$]{0,48}$/), 'locks_'),
};

const TABLE = {
  ...TABLES_TABLE,
  autoPrepare: optional(oneOf(true, false), true),
  maxPollMs: optional(milliseconds(50, 1_000), 800),
  requestTimeoutMs: optional(milliseconds(100, 60_000), 5_000),
} satisfies OptionTable<MysqlBackendOptions>;

const ELSEWHERE = { pool: 'the first argument', uri: 'the first argument' };

export function checkOptions(
  source: unknown,
  options: MysqlBackendOptions | undefined,
  caller = 'mysqlBackend()',
): CheckedMysqlOptions {
  const url = typeof source === 'string' ? urlOf(source, `${caller}: the URL`) : undefined;
  const pool = url === undefined ? callbackPool(source, caller, ', or a URL') : undefined;
  return { pool, url, ...readOptions(caller, options, TABLE, ELSEWHERE) };
}

/** The callback pool under both kinds of pools. A single connection, a cluster, or a pool of the old `mysql` package is refused. */
export function callbackPool(given: unknown, caller: string, orElse = ''): CallbackPool {
  const allowed = `what createPool() of mysql2 or mysql2/promise gives${orElse} (no single connection, no PoolCluster, no pool of the package mysql)`;
  return innerOf(readClient(caller, 'pool', given, allowed, isPool)) as CallbackPool;
}

function isPool(given: unknown): given is MysqlPool {
  const pool = innerOf(given) as Partial<CallbackPool> | null;
  // Options that have a pool are none.
  const outer = given as Partial<MysqlPool> | null;
  const methods = [outer?.getConnection, pool?.getConnection, pool?.query, pool?.promise];
  return typeof pool === 'object' && methods.every((method) => typeof method === 'function');
}

/** A pool of `mysql2/promise` has the one of `mysql2` as its property. */
function innerOf(given: unknown): unknown {
  const outer = given as { readonly pool?: unknown } | null;
  return typeof outer === 'object' && outer !== null && outer.pool !== undefined ? outer.pool : given;
}

function urlOf(value: unknown, what: string): string {
  if (typeof value === 'string' && URL.canParse(value) && /^(mysql|mariadb):$/.test(new URL(value).protocol))
    return value;
  // The value is not shown: it may hold a password.
  throw invalidArgument(`${what} must be a URL such as mysql://user:password@host:3306/database.`);
}
