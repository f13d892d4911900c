import { withTimeLimit } from '@locks/core/backend';
import { createPool, type Pool, type PoolConnection } from 'mysql2';
import { socketOf } from './connections.ts';

const CONNECT_TIMEOUT_MS = 5_000;
const END_LIMIT_MS = 1_000;
/** Statements are short and many locks share them: more connections would only wait for the same rows. */
const CONNECTION_LIMIT = 8;

/** The pool of a backend that was given a URI: it is made at the first use, and ended with the backend. */
export class OwnPool {
  readonly #url: string;
  readonly #connections = new Set<PoolConnection>();
  #pool: Pool | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  get(): Pool {
    return (this.#pool ??= this.#create());
  }

  /** Ends the pool. A server that does not answer keeps neither the caller nor the process. */
  async end(): Promise<void> {
    const ended = this.#pool?.promise().end();
    if (ended === undefined) return;
    await withTimeLimit(
      ended.catch(() => undefined),
      END_LIMIT_MS,
      () => undefined,
    );
    for (const connection of this.#connections) socketOf(connection)?.destroy();
  }

  #create(): Pool {
    const pool = createPool({
      uri: this.#url.replace(/^mariadb:/, 'mysql:'),
      connectionLimit: CONNECTION_LIMIT,
      connectTimeout: CONNECT_TIMEOUT_MS,
      enableKeepAlive: true,
    });
    pool.on('connection', (connection) => {
      this.#connections.add(connection);
      connection.once('end', () => this.#connections.delete(connection));
    });
    return pool;
  }
}
