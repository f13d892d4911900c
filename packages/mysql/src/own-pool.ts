import { createPool, type Pool } from 'mysql2';

const connectTimeout = 5_000;
/** Statements are short and many locks share them: more connections would only wait for the same rows. */
const connectionLimit = 8;

/** The pool of a backend that was given a URI: made at the first use, ended with the backend. */
export class OwnPool {
  readonly #uri: string;
  #pool: Pool | undefined;

  constructor(uri: string) {
    this.#uri = uri;
  }

  get(): Pool {
    this.#pool ??= createPool({
      uri: this.#uri.replace(/^mariadb:/, 'mysql:'),
      connectionLimit,
      connectTimeout,
      enableKeepAlive: true,
    });
    return this.#pool;
  }

  async end(): Promise<void> {
    await this.#pool?.promise().end();
  }
}
