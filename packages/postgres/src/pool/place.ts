import { LockError } from '@locks/core';
import pg from 'pg';

/** Where the database is: your own pool, or the URL of a database for a pool that the backend opens. */
export type Place =
  | {
      /** Used and never closed. */
      readonly pool: pg.Pool;
      readonly connectionString?: never;
    }
  | {
      /** `postgres://user:password@host:5432/database`: a pool of the backend's own, closed with it. */
      readonly connectionString: string;
      readonly pool?: never;
    };

/** A pool, and whether it is ours to close. */
export interface OpenPlace {
  readonly pool: pg.Pool;
  readonly own: boolean;
}

/** Refuses what is neither, with the name of the function that was called. */
export function checkPlace(caller: string, options: unknown): asserts options is Place {
  if (typeof options !== 'object' || options === null)
    throw badOption(`${caller}() takes an object such as { pool }, not ${String(options)}.`);
  const { pool, connectionString } = options as { pool?: unknown; connectionString?: unknown };
  if ((pool === undefined) === (connectionString === undefined))
    throw badOption(`${caller}() takes either \`pool\` or \`connectionString\`, and exactly one of them.`);
  if (pool !== undefined && !isPool(pool))
    throw badOption(
      `${caller}(): \`pool\` must be a Pool of the package pg; a single Client cannot be shared.`,
    );
  if (connectionString !== undefined) checkConnectionString(caller, connectionString);
}

export function checkConnectionString(caller: string, value: unknown): asserts value is string {
  if (typeof value === 'string' && /^postgres(?:ql)?:\/\//.test(value)) return;
  // Not shown: it may hold a password.
  throw badOption(
    `${caller}(): \`connectionString\` must be a URL that begins with postgres://, as postgres://user@host:5432/database.`,
  );
}

/** Connects nowhere yet. */
export function openPlace(place: Place): OpenPlace {
  if (place.pool !== undefined) return { pool: place.pool, own: false };
  const pool = new pg.Pool({
    connectionString: place.connectionString,
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
    allowExitOnIdle: true,
  });
  return { pool, own: true };
}

/** How many backends look after each pool. */
const guards = new WeakMap<pg.Pool, number>();

/**
 * A connection that breaks while nobody uses it leaves the pool by itself; but a pool without a listener for such errors
 * would end the process. One listener for all backends of a pool; gives the function that ends it.
 */
export function guardPool(pool: pg.Pool): () => void {
  const before = guards.get(pool) ?? 0;
  if (before === 0) pool.on('error', ignore);
  guards.set(pool, before + 1);
  let ended = false;
  return () => {
    if (ended) return;
    ended = true;
    const left = (guards.get(pool) ?? 1) - 1;
    guards.set(pool, left);
    if (left === 0) pool.removeListener('error', ignore);
  };
}

function ignore(): void {
  // Whoever uses the pool next is told.
}

export function badOption(message: string): LockError {
  return new LockError('LOCK_INVALID_ARGUMENT', `@locks/postgres: ${message}`);
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
