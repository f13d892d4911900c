import { readClient } from '@locks/core/backend';
import postgres from 'postgres';
import { OwnConnections } from '../driver/own-connections.ts';
import type { OpeningDriver, OwnConnection } from '../driver/postgres-driver.ts';
import { PostgresJsConnection } from './postgres-js-connection.ts';

/** The most connections for single statements. */
const MAX_CONNECTIONS = 4;

/** The pools of the instances of the application, and how many drivers use each. */
const pools = new WeakMap<postgres.Sql, { readonly pool: OwnConnections; users: number }>();

/**
 * postgres.js. The instance of the application lends its settings only: the connections are those of its drivers, which share
 * them. So no statement of the application waits behind one of a lock, or the other way round.
 */
export class PostgresJsDriver implements OpeningDriver {
  readonly pool: OwnConnections;
  readonly #sql: postgres.Sql;

  constructor(sql: postgres.Sql) {
    this.#sql = sql;
    const limit = Math.min(sql.options.max, MAX_CONNECTIONS);
    const shared = pools.get(sql) ?? {
      pool: new OwnConnections(limit, () => this.open('@locks/postgres')),
      users: 0,
    };
    pools.set(sql, shared);
    shared.users += 1;
    this.pool = shared.pool;
  }

  open(name: string, address?: string): OwnConnection {
    const { options } = address === undefined ? this.#sql : postgres(address);
    return new PostgresJsConnection(options, name);
  }

  async close(): Promise<void> {
    const shared = pools.get(this.#sql);
    if (shared?.pool !== this.pool) return;
    shared.users -= 1;
    if (shared.users > 0) return;
    pools.delete(this.#sql);
    await this.pool.close();
  }
}

export function readSql(caller: string, given: unknown): postgres.Sql {
  const allowed =
    'what postgres() of the package postgres returns (no transaction and no connection of it; a Pool of pg belongs to @locks/postgres)';
  return readClient(caller, 'sql', given, allowed, isSql);
}

function isSql(value: unknown): value is postgres.Sql {
  if (typeof value !== 'function') return false;
  const { options, unsafe, listen } = value as Partial<postgres.Sql>;
  // A transaction and a reserved connection have neither options nor `listen`.
  return typeof options === 'object' && typeof unsafe === 'function' && typeof listen === 'function';
}
