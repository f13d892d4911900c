import { createLocks, type LockManager, type LockOptions } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { postgresLeaseBackend, type PostgresLeaseOptions } from '@locks/postgres';
import { postgresLeaseBackend as byPostgresJs } from '@locks/postgres/postgres-js';
import { type PostgresServer, startPostgres, waitUntil } from '@locks/test-servers';
import pg from 'pg';
import postgres from 'postgres';
import { FaultLab } from '../src/fault-lab/fault-lab.ts';

/** How late this machine may be. */
export const SLACK_MS = 1_000;

type LeaseSettings = Pick<PostgresLeaseOptions, 'schema' | 'listen'>;

/** By which driver the tests run. */
const DRIVER = process.env['LOCKS_POSTGRES_DRIVER'] === 'postgres-js' ? 'postgres-js' : 'pg';

export interface LabOptions extends LockOptions {
  /** Of the pool. */
  readonly pool?: pg.PoolConfig;
  readonly schema?: string;
  readonly listen?: PostgresLeaseOptions['listen'];
  /** @defaultValue the driver that the environment names */
  readonly driver?: 'pg' | 'postgres-js';
}

interface LeaseAddress {
  readonly host?: string;
  readonly port: number;
  readonly listen?: PostgresLeaseOptions['listen'];
}

export default class LeaseLab extends FaultLab<LabOptions> {
  readonly module = import.meta.url;

  async server(settings: Readonly<Record<string, string | number>> = {}): Promise<PostgresServer> {
    return this.use(await startPostgres({ settings }));
  }

  override backend(at: LeaseAddress, options: LabOptions = {}): LockBackend {
    const { pool: config, schema, listen = at.listen, driver = DRIVER } = options;
    const settings = { ...(schema !== undefined && { schema }), ...(listen !== undefined && { listen }) };
    return driver === 'postgres-js'
      ? this.#byPostgresJs(urlOf(at), config, settings)
      : this.#byPg(urlOf(at), config, settings);
  }

  locks(at: LeaseAddress, { pool, schema, listen, driver, ...options }: LabOptions = {}): LockManager {
    return this.use(createLocks(this.backend(at, { pool, schema, listen, driver }), options));
  }

  #byPg(connectionString: string, config: pg.PoolConfig | undefined, settings: LeaseSettings): LockBackend {
    const pool = new pg.Pool({
      connectionString,
      connectionTimeoutMillis: 1_000,
      allowExitOnIdle: true,
      ...config,
    });
    this.defer(() => pool.end());
    return postgresLeaseBackend(pool, settings);
  }

  #byPostgresJs(url: string, config: pg.PoolConfig = {}, settings: LeaseSettings = {}): LockBackend {
    const { connectionString = url, max = 10, statement_timeout } = config;
    const sql = postgres(connectionString, {
      max,
      ...(typeof statement_timeout === 'number' && { connection: { statement_timeout } }),
    });
    this.defer(() => sql.end());
    return byPostgresJs(sql, settings);
  }
}

export function urlOf(
  { host = '127.0.0.1', port }: { readonly host?: string; readonly port: number },
  role = 'postgres',
): string {
  return `postgres://${role}@${host}:${port}/postgres`;
}

/** Resolves when `count` connections of the role `postgres` listen for hand-offs. */
export async function untilListening(server: PostgresServer, count: number): Promise<void> {
  const listening = async (): Promise<boolean> => (await listeners(server)) === count;
  await waitUntil(listening, { what: `${count} listeners` });
}

/** Resolves when the store counts `count` clients of a schema that listen. */
export async function untilStoreKnows(server: PostgresServer, schema: string, count: number): Promise<void> {
  const living = `SELECT 1 FROM ${schema}.clients WHERE listener IS NOT NULL AND NOT ${schema}.has_ended(listener)`;
  const isKnown = async (): Promise<boolean> => (await server.query(living)).length === count;
  await waitUntil(isKnown, { what: `${count} clients that listen`, timeoutMs: 20_000 });
}

/** A condition on pg_stat_activity. */
export const isListener = "application_name = '@locks/postgres listener'";

async function listeners(server: PostgresServer): Promise<number> {
  const [row] = await server.query(
    `SELECT count(*) FROM pg_stat_activity WHERE ${isListener} AND usename = 'postgres' AND query NOT LIKE 'SELECT pg_backend_pid%'`,
  );
  return Number(row?.['count']);
}
