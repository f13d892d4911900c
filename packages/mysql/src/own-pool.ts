import { createPool, type Pool } from 'mysql2';

const connectTimeout = 5_000;
const endMs = 1_000;
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

  /** Connections that answer no more must not hold up whoever closes. */
  async end(): Promise<void> {
    const ended = this.#pool?.promise().end();
    if (ended === undefined) return;
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, endMs);
    });
    await Promise.race([ended.catch(() => undefined), patience]);
    clearTimeout(timer);
  }
}
