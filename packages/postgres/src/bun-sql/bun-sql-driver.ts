import { readClient } from '@locks/core/backend';
import { OwnConnections } from '../driver/own-connections.ts';
import type { OpeningDriver, OwnConnection } from '../driver/postgres-driver.ts';
import { BunConnection, type BunSql } from './bun-connection.ts';

/** The most connections for single statements. */
const MAX_CONNECTIONS = 4;

/** `Bun.SQL`. The client of the application lends its settings only: the connections are the backend's own. */
export class BunSqlDriver implements OpeningDriver {
  readonly pool: OwnConnections;
  readonly #options: object;

  constructor({ options }: BunSql) {
    this.#options = options;
    this.pool = new OwnConnections(MAX_CONNECTIONS, () => this.open('@locks/postgres'));
  }

  open(name: string): OwnConnection {
    return new BunConnection(this.#options, name);
  }

  close(): Promise<void> {
    return this.pool.close();
  }
}

export function readBunSql(caller: string, given: unknown): BunSql {
  const allowed = 'a Bun.SQL of a PostgreSQL database (no transaction of it)';
  return readClient(caller, 'sql', given, allowed, isBunSql);
}

function isBunSql(value: unknown): value is BunSql {
  if (typeof value !== 'function') return false;
  const { options, unsafe, close } = value as Partial<BunSql>;
  // Of a transaction, or of a reserved connection.
  if ('savepoint' in value || 'release' in value) return false;
  const { adapter } = (options ?? {}) as { readonly adapter?: unknown };
  return adapter === 'postgres' && typeof unsafe === 'function' && typeof close === 'function';
}
