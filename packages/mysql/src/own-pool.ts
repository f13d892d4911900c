import { withTimeLimit } from '@locks/core/backend';
import { createPool, type Pool } from 'mysql2';

const CONNECT_TIMEOUT_MS = 5_000;
const END_LIMIT_MS = 1_000;
/** Statements are short and many locks share them: more connections would only wait for the same rows. */
const CONNECTION_LIMIT = 8;

/** The pool of a backend that was given a URI: it is made at the first use, and ended with the backend. */
export class OwnPool {
  readonly #uri: string;
  #pool: Pool | undefined;

  constructor(uri: string) {
    this.#uri = uri;
  }

  get(): Pool {
    this.#pool ??= createPool({
      uri: this.#uri.replace(/^mariadb:/, 'mysql:'),
      connectionLimit: CONNECTION_LIMIT,
      connectTimeout: CONNECT_TIMEOUT_MS,
      enableKeepAlive: true,
    });
    return this.#pool;
  }

  /** Ends the pool; connections that no longer answer do not delay that. */
  async end(): Promise<void> {
    const ended = this.#pool?.promise().end();
    if (ended === undefined) return;
    await withTimeLimit(
      ended.catch(() => undefined),
      END_LIMIT_MS,
      () => undefined,
    );
  }
}
