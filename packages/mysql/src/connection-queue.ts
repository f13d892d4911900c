import type { Pool, PoolConnection } from 'mysql2';

/** The lowest number goes first. */
export const PRIORITIES = {
  /** Releases, renewals and the heartbeat of waiters. */
  holder: 0,
  /** Abandons of acquisitions that were given up. */
  abandon: 1,
  /** Attempts to acquire, polls and questions of operators. */
  acquire: 2,
} as const;

/** How urgent a request is; it may become more urgent while it waits. */
export interface Urgency {
  readonly priority: number;
}

export const URGENT: Urgency = { priority: PRIORITIES.holder };
export const PATIENT: Urgency = { priority: PRIORITIES.acquire };

export interface RequestedConnection {
  readonly connection: Promise<PoolConnection>;
  /** Takes the request back: it gets no connection. */
  withdraw(): void;
}

interface ConnectionRequest {
  readonly urgency: Urgency;
  resolve(connection: PoolConnection): void;
  reject(error: Error): void;
}

/** The limit of mysql2's pool where its `connectionLimit` is not set. */
const DEFAULT_LIMIT = 10;

/** One connection that the pool was asked for. */
type Ask = symbol;

/**
 * The queue in front of a pool: releases and renewals come before acquires, however many of those wait. The pool itself
 * is never asked for more connections than it has, so its own queue, which knows no urgency, stays short.
 */
export class ConnectionQueue {
  readonly #pool: () => Pool;
  readonly #waiting = new Set<ConnectionRequest>();
  /** Asks without an answer, the oldest first. Never more than requests that wait: an ask that hangs is forgotten with them. */
  readonly #asks = new Set<Ask>();
  /** Connections that the pool was asked for, or has lent. */
  #taken = 0;
  #asking = false;

  constructor(pool: () => Pool) {
    this.#pool = pool;
  }

  /** Asks for a connection; `returned` is to be called when it was released or destroyed. */
  request(urgency: Urgency): RequestedConnection {
    let withdraw = (): void => undefined;
    const connection = new Promise<PoolConnection>((resolve, reject) => {
      const request = { urgency, resolve, reject };
      withdraw = () => this.#remove(request);
      this.#waiting.add(request);
      this.#ask();
    });
    return { connection, withdraw };
  }

  /** Takes note of a connection that was released or destroyed. */
  returned(): void {
    this.#taken -= 1;
    // The connections that are being made may take long, or never come: a request that waits gets the one that came back.
    this.#ask(this.#waiting.size > 0 ? 1 : 0);
  }

  #ask(more = 0): void {
    // A pool that refuses answers at once: the loop goes on, it does not begin again within itself.
    if (this.#asking) return;
    this.#asking = true;
    try {
      const pool = this.#pool();
      const limit = limitOf(pool);
      for (let extra = more; this.#asks.size < this.#waiting.size || extra > 0; extra -= 1) {
        if (this.#taken >= limit) break;
        const ask = Symbol();
        this.#asks.add(ask);
        this.#taken += 1;
        this.#forgetOldAsks();
        pool.getConnection((error, connection) => this.#answered(ask, error, connection));
      }
    } finally {
      this.#asking = false;
    }
  }

  /** The answer goes to the request that is the most urgent when it arrives. */
  #answered(ask: Ask, error: Error | null, connection: PoolConnection): void {
    const isCounted = this.#asks.delete(ask);
    if (error) {
      this.#taken -= 1;
      // An ask that was forgotten fails nobody: the others will be answered.
      if (isCounted) this.#take(this.#leastUrgent())?.reject(error);
      return this.#ask();
    }
    const request = this.#take(this.#mostUrgent());
    if (request !== undefined) return request.resolve(connection);
    connection.release();
    this.returned();
  }

  #take(request: ConnectionRequest | undefined): ConnectionRequest | undefined {
    if (request !== undefined) this.#remove(request);
    return request;
  }

  #remove(request: ConnectionRequest): void {
    this.#waiting.delete(request);
    this.#forgetOldAsks();
  }

  #forgetOldAsks(): void {
    for (const ask of this.#asks) {
      if (this.#asks.size <= this.#waiting.size) return;
      this.#asks.delete(ask);
    }
  }

  #mostUrgent(): ConnectionRequest | undefined {
    let most: ConnectionRequest | undefined;
    for (const request of this.#waiting) {
      if (most === undefined || request.urgency.priority < most.urgency.priority) most = request;
      if (most.urgency.priority === PRIORITIES.holder) break;
    }
    return most;
  }

  /** A failed connect fails the least urgent request, so that acquires do not use up the connects of a release beside them. */
  #leastUrgent(): ConnectionRequest | undefined {
    let least: ConnectionRequest | undefined;
    for (const request of this.#waiting) {
      if (least === undefined || request.urgency.priority > least.urgency.priority) least = request;
      if (least.urgency.priority === PRIORITIES.acquire) break;
    }
    return least;
  }
}

/** The pool's limit, which the types of mysql2 do not have; 0 means none. */
function limitOf(pool: Pool): number {
  const { config } = pool as { readonly config?: { readonly connectionLimit?: number } };
  return (config?.connectionLimit ?? DEFAULT_LIMIT) || Number.POSITIVE_INFINITY;
}
