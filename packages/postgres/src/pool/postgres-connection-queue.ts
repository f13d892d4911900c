import type pg from 'pg';

/** Lower goes first. */
export const priorities = {
  /** What a holder waits for: a release, a renewal, the heartbeat of waiters. */
  holder: 0,
  /** Abandons of acquisitions that ended without a lease. */
  abandon: 1,
  /** Attempts to acquire, and inspection. */
  acquire: 2,
} as const;

export type Priority = (typeof priorities)[keyof typeof priorities];

type Release = (error?: Error) => void;

/** Somebody who needs a connection once. */
export interface ConnectionRequest {
  readonly priority: Priority;
  /** Called when a connection is free. `false`: the request needs none any more, and the next one gets the connection. */
  serve(client: pg.PoolClient, release: Release): boolean;
  /** Called when no connection could be made. */
  fail(error: Error): void;
}

/** The `max` of pg's pool where it is not set. */
const DEFAULT_MAX = 10;

/**
 * The queue in front of a pool. Releases and renewals go before acquires, however many of those wait. The queue never asks
 * the pool for more connections than the pool may have, so the pool's own queue stays short: pg-pool recurses for every
 * request that returns its connection at once, and the application gets its turn between two of our statements.
 */
export class PostgresConnectionQueue {
  readonly #pool: pg.Pool;
  readonly #max: number;
  readonly #waiting: readonly ConnectionRequest[][] = [[], [], []];
  /** How many connections the pool was asked for and has not given yet. */
  #asked = 0;
  #lent = 0;
  #asking = false;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
    this.#max = pool.options?.max ?? DEFAULT_MAX;
  }

  add(request: ConnectionRequest): void {
    this.#waiting[request.priority]?.push(request);
    this.#ask();
  }

  get #count(): number {
    return this.#waiting.reduce((count, { length }) => count + length, 0);
  }

  #ask(): void {
    // A pool that is ending calls back synchronously: the loop below continues then, and must not start again inside itself.
    if (this.#asking) return;
    this.#asking = true;
    const asked = this.#asked;
    while (this.#asked < this.#count && this.#mayAsk) this.#connect();
    // Connections that are being made may hang, so a connection that is idle meanwhile is asked for as well.
    if (this.#asked === asked && this.#count > 0 && this.#mayAsk && this.#pool.idleCount > 0) this.#connect();
    this.#asking = false;
  }

  get #mayAsk(): boolean {
    return this.#asked + this.#lent < this.#max;
  }

  #connect(): void {
    this.#asked += 1;
    this.#pool.connect((failure, client, release) => this.#connected(failure, client, release));
  }

  /** Gives a connection to the request that is the most urgent one when the connection arrives. */
  #connected(failure: Error | undefined, client: pg.PoolClient | undefined, release: Release): void {
    this.#asked -= 1;
    if (client === undefined) {
      // Only the least urgent request fails: a release waits for the connections that are still being made.
      const last = this.#waiting.findLast(({ length }) => length > 0)?.shift();
      last?.fail(failure ?? new Error('the pool gave no connection'));
      return this.#ask();
    }
    this.#lent += 1;
    const returnConnection: Release = (error) => {
      this.#lent -= 1;
      // Asking before this connection is free lets the pool serve the application in between.
      if (error === undefined) this.#ask();
      release(error);
      // The pool closes a broken connection, and has room for another one only now.
      this.#ask();
    };
    for (let request = this.#next(); request !== undefined; request = this.#next()) {
      if (request.serve(client, returnConnection)) return;
    }
    // Deferred: inside of the pool's own call the pool would serve its next request recursively.
    process.nextTick(returnConnection);
  }

  #next(): ConnectionRequest | undefined {
    return this.#waiting.find(({ length }) => length > 0)?.shift();
  }
}
