import {
  invalidArgument,
  matching,
  optional,
  type OptionsRead,
  type OptionTable,
  text,
} from '@locks/core/backend';
import pg from 'pg';

/** The source of the database: your own pool, or the URL of a database for a pool that the backend opens. */
export type DatabaseSource =
  | {
      /** A pool of yours, which is used and never closed. */
      readonly pool: pg.Pool;
      readonly connectionString?: never;
    }
  | {
      /** `postgres://user:password@host:5432/database`: a pool of the backend's own, closed with it. */
      readonly connectionString: string;
      readonly pool?: never;
    };

/** The pool of a source, and whether this package opened it and so has to close it. */
export interface OpenedPool {
  readonly pool: pg.Pool;
  readonly own: boolean;
}

/** The URL of a database. An error message never shows it, because it may hold a password. */
export const readConnectionString = text(
  'a URL that begins with postgres://, as postgres://user@host:5432/database',
  /^postgres(?:ql)?:\/\//,
  true,
);

export const SOURCE_TABLE = {
  pool: optional(matching('a Pool of the package pg (a single Client cannot be shared)', isPool)),
  connectionString: optional(readConnectionString),
} satisfies OptionTable<DatabaseSource>;

/** The source of checked options. Refuses options that name no source, or two. */
export function sourceOf(
  caller: string,
  { pool, connectionString }: OptionsRead<typeof SOURCE_TABLE>,
): DatabaseSource {
  if (pool !== undefined && connectionString === undefined) return { pool };
  if (pool === undefined && connectionString !== undefined) return { connectionString };
  const given = pool === undefined ? 'neither' : 'both';
  throw invalidArgument(`${caller} takes either pool or connectionString, and ${given} was given.`);
}

/** Opens a pool for a source. The pool makes its first connection when somebody asks for one. */
export function openPool(source: DatabaseSource): OpenedPool {
  if (source.pool !== undefined) return { pool: source.pool, own: false };
  const pool = new pg.Pool({
    connectionString: source.connectionString,
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
    allowExitOnIdle: true,
  });
  return { pool, own: true };
}

/** The number of backends that rely on the error listener of each pool. */
const guardCounts = new WeakMap<pg.Pool, number>();

/**
 * Listens for errors of a pool. A pool removes a connection that breaks while it is idle, but without such a listener the
 * error ends the process. All backends of a pool share one listener; the result ends the use of it.
 */
export function guardPool(pool: pg.Pool): () => void {
  const before = guardCounts.get(pool) ?? 0;
  if (before === 0) pool.on('error', ignore);
  guardCounts.set(pool, before + 1);
  let ended = false;
  return () => {
    if (ended) return;
    ended = true;
    const left = (guardCounts.get(pool) ?? 1) - 1;
    guardCounts.set(pool, left);
    if (left === 0) pool.removeListener('error', ignore);
  };
}

function ignore(): void {
  // The next statement on the pool gets its own error if the server is still away.
}

function isPool(value: unknown): value is pg.Pool {
  return (
    typeof value === 'object' &&
    value !== null &&
    'idleCount' in value &&
    typeof (value as Partial<pg.Pool>).connect === 'function' &&
    typeof (value as Partial<pg.Pool>).query === 'function'
  );
}
