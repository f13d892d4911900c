import { LockError } from '@locks/core';
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
   * What the names of the tables begin with: `A-Z a-z 0-9 _ $`, at most 48 characters. Locks with different prefixes have
   * nothing in common.
   *
   * @defaultValue `'locks_'`
   */
  readonly tablePrefix?: string;
  /**
   * Whether missing tables are created, and older ones migrated, at the first call. With `false` somebody else must have run
   * {@link schemaStatements}.
   *
   * @defaultValue `true`
   */
  readonly createTables?: boolean;
  /**
   * The longest pause in milliseconds between two looks at the tables while somebody waits, 50 to 1000.
   *
   * @defaultValue 800
   */
  readonly maxPollMs?: number;
  /**
   * How long in milliseconds a statement may take, 100 to 60000, the time to get a connection included. Then the connection
   * is destroyed, and the call fails or is repeated.
   *
   * @defaultValue 5000
   */
  readonly statementTimeoutMs?: number;
}

/** Either a pool of yours, which stays yours to end, or a URI, for a small pool of the backend's own. */
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

export interface CheckedOptions {
  readonly pool: CallbackPool | undefined;
  readonly uri: string | undefined;
  readonly database: string | undefined;
  readonly tablePrefix: string;
  readonly createTables: boolean;
  readonly maxPollMs: number;
  readonly statementTimeoutMs: number;
}

const known = new Set([
  'pool',
  'uri',
  'database',
  'tablePrefix',
  'createTables',
  'maxPollMs',
  'statementTimeoutMs',
]);

export function checkOptions(options: MysqlBackendOptions): CheckedOptions {
  if (typeof options !== 'object' || options === null) {
    throw bad(`mysqlBackend() needs an object such as { uri: 'mysql://…' }, not ${show(options)}`);
  }
  for (const name of Object.keys(options)) {
    if (!known.has(name)) throw bad(`unknown option ${show(name)}: the options are ${[...known].join(', ')}`);
  }
  const { pool, uri, database, createTables = true } = options;
  if ((pool === undefined) === (uri === undefined)) {
    throw bad(
      `give either pool, a pool of mysql2, or uri: ${pool === undefined ? 'neither' : 'both'} was given`,
    );
  }
  if (uri !== undefined && !isMysqlUri(uri)) {
    throw bad('uri must be a text such as mysql://user:password@host:3306/database');
  }
  if (database !== undefined && (typeof database !== 'string' || !/^[^\0`]{1,64}$/u.test(database))) {
    throw bad(`database is ${show(database)}: it must be the name of a database, without backquotes`);
  }
  if (typeof createTables !== 'boolean')
    throw bad(`createTables is ${show(createTables)}: it must be a boolean`);
  return {
    pool: pool === undefined ? undefined : callbackPool(pool),
    uri,
    database,
    tablePrefix: checkPrefix(options.tablePrefix),
    createTables,
    maxPollMs: checkMs('maxPollMs', options.maxPollMs, 800, 50, 1_000),
    statementTimeoutMs: checkMs('statementTimeoutMs', options.statementTimeoutMs, 5_000, 100, 60_000),
  };
}

export function checkPrefix(tablePrefix: string = 'locks_'): string {
  if (typeof tablePrefix !== 'string' || !/^[A-Za-z0-9_$]{0,48}$/.test(tablePrefix)) {
    throw bad(`tablePrefix is ${show(tablePrefix)}: it must be 0 to 48 characters of A-Z a-z 0-9 _ $`);
  }
  return tablePrefix;
}

/** What both kinds of pools stand on. A single connection, a cluster, or a pool of the old `mysql` package is refused. */
function callbackPool(given: unknown): CallbackPool {
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
  throw bad(
    `pool is ${show(given)}: it must be what createPool() of mysql2 or mysql2/promise gives ` +
      '(not a single connection, a PoolCluster, or a pool of the package mysql)',
  );
}

function isMysqlUri(uri: unknown): boolean {
  if (typeof uri !== 'string' || !URL.canParse(uri)) return false;
  return /^(mysql|mariadb):$/.test(new URL(uri).protocol);
}

function checkMs(name: string, value: unknown, otherwise: number, least: number, most: number): number {
  if (value === undefined) return otherwise;
  if (typeof value === 'number' && value >= least && value <= most) return value;
  throw bad(`${name} is ${show(value)}: it must be a number from ${least} to ${most}`);
}

function bad(message: string): LockError {
  return new LockError('LOCK_INVALID_ARGUMENT', `@locks/mysql: ${message}`, { backend: 'mysql' });
}

function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value !== 'object' || value === null) return String(value);
  return `an object of ${value.constructor?.name || 'no class'}`;
}
