import type { ConnectionPool } from '@locks/core/backend';
import pg from 'pg';
import type {
  Answered,
  OwnConnection,
  PooledConnection,
  OpeningDriver,
  Statement,
} from '../driver/postgres-driver.ts';
import { isRefusal } from '../driver/server-error.ts';
import { limitOf, takeCleanClient, transactionStatusOf } from '../driver/clean-client.ts';
import { OpenTransactionError } from '../driver/open-transaction.ts';
import { OwnConnections } from '../driver/own-connections.ts';
import type { DatabaseSource } from './database-source.ts';
import { PgOwnConnection, processIdOf } from './pg-own-connection.ts';
import { sendTexts } from './text-query.ts';

/** The package `pg`: a pool of the application, or one of the driver's own. */
export class PgDriver implements OpeningDriver {
  readonly pool: ConnectionPool<PooledConnection>;
  readonly #pool: pg.Pool;
  readonly #isOwn: boolean;
  /** The connections for statements that find nothing but clients with an open transaction in the pool. */
  readonly #outside: OwnConnections;
  #unguard: (() => void) | undefined;

  constructor(source: DatabaseSource) {
    this.#isOwn = typeof source === 'string';
    // The pool makes its first connection when somebody asks for one.
    this.#pool = typeof source === 'string' ? openPool(source) : source;
    const { limit, connect, release } = lendingPool(this.#pool);
    this.#outside = new OwnConnections(limit, () => this.open('@locks/postgres'));
    this.pool = {
      limit,
      connect: (done) => {
        this.#unguard ??= guardPool(this.#pool);
        connect((error, connection) => {
          if (error instanceof OpenTransactionError) this.#outside.connect(done);
          else done(error, connection);
        });
      },
      release,
    };
  }

  open(name: string, address?: string): OwnConnection {
    return address === undefined ? PgOwnConnection.like(this.#pool, name) : PgOwnConnection.to(address, name);
  }

  isClientClosed(): boolean {
    return !this.#isOwn && this.#pool.ending;
  }

  async close(): Promise<void> {
    await this.#outside.close();
    // The guard of a pool of its own stays: `end()` resolves before the server has closed the connections, and may still tell errors.
    if (!this.#isOwn) this.#unguard?.();
    else if (!this.#pool.ending) await this.#pool.end();
  }
}

/**
 * pg's pool as the queue of connections needs it, without the clients that have an open transaction. The pool's own queue must stay short: pg-pool recurses for every request that
 * returns its connection at once.
 */
export function lendingPool(pool: pg.Pool): ConnectionPool<PooledConnection> {
  return {
    limit: limitOf(pool),
    connect: (done) => {
      takeCleanClient(pool, [], (error, client) => done(error, client && lentClient(client)));
    },
    release: (connection) => connection.release(undefined),
  };
}

/** The clients that were lent before: each is wrapped once. */
const wrapped = new WeakMap<pg.PoolClient, PgPooledConnection>();

function lentClient(client: pg.PoolClient): PooledConnection {
  let connection = wrapped.get(client);
  if (connection === undefined) {
    connection = new PgPooledConnection(client);
    wrapped.set(client, connection);
  }
  client.on('error', ignore);
  return connection;
}

class PgPooledConnection implements PooledConnection {
  readonly #client: pg.PoolClient;

  constructor(client: pg.PoolClient) {
    this.#client = client;
  }

  get processId(): number | undefined {
    return processIdOf(this.#client);
  }

  get isInTransaction(): boolean {
    return transactionStatusOf(this.#client).wasOpen;
  }

  send(statement: Statement, done: Answered): void {
    sendTexts(this.#client, statement, done);
  }

  release(error: Error | null | undefined): void {
    this.#client.removeListener('error', ignore);
    this.#client.release(!error || isRefusal(error) ? undefined : error);
  }
}

/** The number of drivers that rely on the error listener of each pool. */
const guardCounts = new WeakMap<pg.Pool, number>();

/**
 * Listens for errors of a pool. A pool removes a connection that breaks while it is idle, but without such a listener the
 * error ends the process. All drivers of a pool share one listener; the result ends the use of it.
 */
function guardPool(pool: pg.Pool): () => void {
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
  // Statements in flight fail by themselves, and the next one gets its own error if the server is still away.
}

function openPool(connectionString: string): pg.Pool {
  return new pg.Pool({
    connectionString,
    keepAlive: true,
    connectionTimeoutMillis: 5_000,
    allowExitOnIdle: true,
  });
}
