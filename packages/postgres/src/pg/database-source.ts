import { invalidArgument, matching, optional, type OptionsRead, type OptionTable } from '@locks/core/backend';
import type pg from 'pg';
import { readConnectionString } from '../driver/connection-string.ts';

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

export const SOURCE_TABLE = {
  pool: optional(
    matching(
      'a Pool of the package pg (a single Client cannot be shared; postgres.js: @locks/postgres/postgres-js)',
      isPool,
    ),
  ),
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

function isPool(value: unknown): value is pg.Pool {
  return (
    typeof value === 'object' &&
    value !== null &&
    'idleCount' in value &&
    typeof (value as Partial<pg.Pool>).connect === 'function' &&
    typeof (value as Partial<pg.Pool>).query === 'function'
  );
}
