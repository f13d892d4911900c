/** Priorities of calls; the lowest number goes first. */
export const PRIORITIES = {
  /** Calls that a holder waits for: releases, renewals and the heartbeat of waiters. */
  holder: 0,
  /** Abandons of acquisitions that ended without a lease. */
  abandon: 1,
  /** Attempts to acquire, polls and questions of operators. */
  acquire: 2,
} as const;

/** How urgent a call is: the order in which calls that wait for a connection get one. */
export type Priority = (typeof PRIORITIES)[keyof typeof PRIORITIES];

/** So often one after the other the oldest request lets more urgent ones pass: renewals without a pause would let nothing else through. */
const MOST_PASSES = 32;

/** The pool of a client library, as a {@link ConnectionQueue} needs it. */
export interface ConnectionPool<C> {
  /** The most connections that the pool lends at a time; `Infinity`: as many as are asked for. */
  readonly limit: number;
  /** Asks for a connection. `done` is called once, at once or later: with a connection, or with why none could be made. */
  connect(done: (error: Error | null | undefined, connection: C | undefined) => void): void;
  /** Takes back a connection that `connect` lent. */
  release(connection: C): void;
}

/** A request for one use of a connection. */
export interface ConnectionRequest<C> {
  /** The present priority, read whenever a connection comes: a request may become more urgent while it waits. */
  readonly priority: Priority;
  /** Called when a connection is free. `false`: the request needs none any more, and the next one gets the connection. */
  serve(connection: C): boolean;
  /** Called when no connection could be made. */
  fail(error: Error): void;
}

/**
 * The queue in front of a pool of connections: releases, renewals and abandons come before acquires, however many of those
 * wait; one in 33 requests is the oldest one, whatever it is. The pool is never asked for more connections than it lends: its own queue, which knows no priorities, stays short.
 *
 * @example
 * ```ts
 * import { type ConnectionPool, ConnectionQueue, PRIORITIES } from '@locks/core/backend';
 *
 * export function release(pool: ConnectionPool<{ send(text: string): Promise<void> }>): void {
 *   const queue = new ConnectionQueue(pool);
 *   queue.add({
 *     priority: PRIORITIES.holder,
 *     fail: console.error,
 *     serve(connection) {
 *       void connection.send('release').finally(() => {
 *         pool.release(connection);
 *         queue.returned();
 *       });
 *       return true;
 *     },
 *   });
 * }
 * ```
 */
export class ConnectionQueue<C> {
  readonly #pool: ConnectionPool<C>;
  readonly #waiting = new Set<ConnectionRequest<C>>();
  /** Pending connects, the oldest first; at most one per waiting request, so a connect that hangs is forgotten in the end. */
  readonly #asks = new Set<symbol>();
  /** Connections that the pool was asked for, or has lent. */
  #taken = 0;
  #asking = false;
  /** How often the oldest request has let others pass. */
  #passes = 0;

  constructor(pool: ConnectionPool<C>) {
    this.#pool = pool;
  }

  /** Adds a request. @returns a function that takes it back: `serve` and `fail` are not called any more */
  add(request: ConnectionRequest<C>): () => void {
    this.#waiting.add(request);
    this.#ask();
    return () => this.#remove(request);
  }

  /** Takes note of a connection that is back in its pool, or was closed: called once for each that `serve` accepted. */
  returned(): void {
    this.#taken -= 1;
    // The connections that are being made may take long, or never come: a request that waits gets the one that came back.
    this.#ask(this.#waiting.size > 0 ? 1 : 0);
  }

  #ask(more = 0): void {
    // A pool that refuses may call back at once: the loop goes on then, without recursion.
    if (this.#asking) return;
    this.#asking = true;
    try {
      for (let extra = more; this.#asks.size < this.#waiting.size || extra > 0; extra -= 1) {
        if (this.#taken >= this.#pool.limit) break;
        const ask = Symbol();
        this.#asks.add(ask);
        this.#taken += 1;
        this.#forgetOldAsks();
        this.#pool.connect((error, connection) => this.#answered(ask, error, connection));
      }
    } finally {
      this.#asking = false;
    }
  }

  /** Gives a connection to the request that is the most urgent when the connection arrives. */
  #answered(ask: symbol, error: Error | null | undefined, connection: C | undefined): void {
    const isCounted = this.#asks.delete(ask);
    if (connection === undefined) {
      this.#taken -= 1;
      // A forgotten connect fails no request: the other connects will be answered.
      if (isCounted) this.#leastUrgent()?.fail(error ?? new Error('the pool gave no connection'));
      return this.#ask();
    }
    for (let next = this.#mostUrgent(); next !== undefined; next = this.#mostUrgent()) {
      if (next.serve(connection)) return;
    }
    // The release is deferred: inside of the pool's own call the pool could serve its next request recursively.
    process.nextTick(() => {
      this.#pool.release(connection);
      this.returned();
    });
  }

  #mostUrgent(): ConnectionRequest<C> | undefined {
    const [oldest] = this.#waiting;
    let next = oldest;
    if (oldest === undefined || this.#passes < MOST_PASSES)
      next = this.#take(PRIORITIES.holder, (one, other) => one.priority < other.priority);
    else this.#remove(oldest);
    this.#passes = next === oldest ? 0 : this.#passes + 1;
    return next;
  }

  /** A failed connect fails the least urgent request, so that acquires do not use up the connects of a release beside them. */
  #leastUrgent(): ConnectionRequest<C> | undefined {
    return this.#take(PRIORITIES.acquire, (one, other) => one.priority > other.priority);
  }

  /** Removes the oldest of the requests that no other `precedes`; the search ends at one of priority `best`. */
  #take(
    best: Priority,
    precedes: (one: ConnectionRequest<C>, other: ConnectionRequest<C>) => boolean,
  ): ConnectionRequest<C> | undefined {
    let first: ConnectionRequest<C> | undefined;
    for (const request of this.#waiting) {
      if (first === undefined || precedes(request, first)) first = request;
      if (first.priority === best) break;
    }
    if (first !== undefined) this.#remove(first);
    return first;
  }

  #remove(request: ConnectionRequest<C>): void {
    this.#waiting.delete(request);
    this.#forgetOldAsks();
  }

  #forgetOldAsks(): void {
    for (const ask of this.#asks) {
      if (this.#asks.size <= this.#waiting.size) return;
      this.#asks.delete(ask);
    }
  }
}
