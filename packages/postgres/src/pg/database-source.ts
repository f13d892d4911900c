import { readClient } from '@locks/core/backend';
import type pg from 'pg';
import { readConnectionString } from '../driver/connection-string.ts';

/**
 * The database: a pool of yours, which is used and never closed, or `postgres://user:password@host:5432/database` for a pool that is
 * opened for this, and closed with it.
 */
export type DatabaseSource = pg.Pool | string;

/** Checks the first argument of a function. */
export function readSource(caller: string, given: unknown): DatabaseSource {
  if (typeof given === 'string') return readConnectionString(given, `${caller}: the URL`);
  const allowed =
    'a Pool of the package pg, or a URL (a single Client cannot be shared; postgres.js: @locks/postgres/postgres-js)';
  return readClient(caller, 'pool', given, allowed, isPool);
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
