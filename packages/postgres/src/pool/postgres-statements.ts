import { createHash } from 'node:crypto';
import {
  type Call,
  type ConnectionPool,
  ConnectionQueue,
  NoAnswerError,
  PRIORITIES,
  type Priority,
} from '@locks/core/backend';
import type pg from 'pg';
import { NamedStatement, type Value } from './named-statement.ts';
import { isRefusal, isStrangeStatement } from './server-error.ts';
import { queryTexts, type TextResult } from './text-query.ts';

/** The silence after which a connection counts as broken, whatever TCP says. */
const ANSWER_MS = 5_000;

/** The delay of an error after the caller's deadline: the caller's own timer then reports first, and its error says more. */
const GRACE_MS = 100;

/** The interval at which statements without an answer are checked. */
const WATCH_MS = 50;

const noResult: TextResult = { rows: [], count: 0 };

export interface StatementResult extends TextResult {
  /** The time when a connection was free and before the statement was sent, on the caller's clock. */
  readonly sentAt: number;
  /** The server process that answered, as the connection was told: see {@link processIdOf}. */
  readonly processId: number | undefined;
}

/** The caller's clock, and the time on it until which the caller waits. */
export type StatementDeadline = Pick<Call, 'now' | 'deadline'>;

/** No connection became free, or could be made, while the caller waited. */
export class NoConnectionError extends Error {
  constructor() {
    super('no connection of the pool was free in time');
  }
}

/** Rejects what was not sent before its caller's deadline, after the caller's own timer. */
export function rejectLate(reject: (error: Error) => void): void {
  setTimeout(() => reject(new NoConnectionError()), GRACE_MS).unref();
}

/** A statement that is about to be sent. */
export interface OutgoingStatement {
  readonly text: string;
  readonly values: unknown[];
  /** The present time, read just now on the caller's clock. */
  readonly sentAt: number;
  /** The longest wait for the answer, in milliseconds. */
  readonly leftMs: number;
}

/** Makes a statement when a connection is free; `undefined`: nobody wants its result any more. */
export type MakeStatement = () => OutgoingStatement | undefined;

/** The default of `max` of pg's pool. */
const DEFAULT_MAX = 10;

/**
 * pg's pool as the queue of connections needs it. The pool's own queue must stay short: pg-pool recurses for every request that
 * returns its connection at once.
 */
export function lendingPool(pool: pg.Pool): ConnectionPool<pg.PoolClient> {
  return {
    limit: pool.options?.max ?? DEFAULT_MAX,
    connect: (done) => pool.connect(done),
    release: (client) => client.release(),
  };
}

/** A statement that was sent and has no answer yet. */
interface SentStatement {
  readonly end: (error: Error) => void;
  /** The time until which the answer is waited for, on `performance.now()`. */
  readonly until: number;
}

/** Single statements on the connections of a pool. */
export class PostgresStatements {
  readonly pool: pg.Pool;
  readonly #queue: ConnectionQueue<pg.PoolClient>;
  /** Whether statements are prepared, once for each connection; `false` if a pooler lends connections by transaction. */
  prepare = false;
  readonly #names = new Map<string, string>();
  readonly #sent = new Set<SentStatement>();
  #watcher: NodeJS.Timeout | undefined;

  constructor(pool: pg.Pool) {
    this.pool = pool;
    this.#queue = new ConnectionQueue(lendingPool(pool));
  }

  /** Runs one statement. A connection that gives no answer until the caller's deadline, or for 5 s, is closed. */
  async run(
    text: string,
    values: unknown[],
    call: StatementDeadline,
    priority: Priority = PRIORITIES.holder,
  ): Promise<StatementResult> {
    const late = call.now() >= call.deadline;
    const result = await this.send(() => {
      const sentAt = call.now();
      const leftMs = late ? ANSWER_MS : call.deadline - sentAt;
      return leftMs > 0 ? { text, values, sentAt, leftMs } : undefined;
    }, priority);
    if (result !== undefined) return result;
    // The deadline passed in the queue: after an outage, statements that nobody waits for are not sent.
    return await new Promise((_, reject) => rejectLate(reject));
  }

  /** Runs the statement that `make` gives when a connection is free. Resolves to `undefined` when `make` does. */
  send(make: MakeStatement, priority: Priority): Promise<StatementResult | undefined> {
    return new Promise((resolve, reject) => {
      const serve = (client: pg.PoolClient): boolean => {
        const statement = make();
        if (statement === undefined) resolve(undefined);
        else this.#send(client, statement, resolve, reject);
        return statement !== undefined;
      };
      this.#queue.add({ priority, serve, fail: reject });
    });
  }

  #send(
    client: pg.PoolClient,
    { text, values, sentAt, leftMs }: OutgoingStatement,
    resolve: (result: StatementResult) => void,
    reject: (error: Error) => void,
  ): void {
    const end = (error: Error | null | undefined, result: TextResult = noResult): void => {
      if (!this.#sent.delete(sent)) return;
      client.removeListener('error', end);
      client.release(!error || isRefusal(error) ? undefined : error);
      this.#queue.returned();
      if (!error) {
        const { rows, count } = result;
        return resolve({ rows, count, sentAt, processId: processIdOf(client) });
      }
      if (isStrangeStatement(error)) this.prepare = false;
      reject(error);
    };
    const sent: SentStatement = {
      end,
      until: performance.now() + Math.min(leftMs + GRACE_MS, ANSWER_MS),
    };
    this.#sent.add(sent);
    this.#watch();
    client.once('error', end);
    if (!this.prepare) queryTexts(client, { text, values }, end);
    else if (values.every(isPlain) && 'connection' in client)
      client.query(new NamedStatement(this.#nameOf(text), text, values, end));
    // pg itself writes arrays, and its native client has no `connection`.
    else queryTexts(client, { name: this.#nameOf(text), text, values }, end);
  }

  /** Watches all statements with one timer, rather than one for each. */
  #watch(): void {
    this.#watcher ??= setInterval(() => {
      const now = performance.now();
      for (const { end, until } of this.#sent)
        if (until <= now) afterReading(() => end(new NoAnswerError('the connection gave no answer in time')));
      if (this.#sent.size > 0) return;
      clearInterval(this.#watcher);
      this.#watcher = undefined;
    }, WATCH_MS).unref();
  }

  #nameOf(text: string): string {
    let name = this.#names.get(text);
    if (name === undefined) {
      name = `locks_${createHash('sha256').update(text).digest('hex').slice(0, 24)}`;
      this.#names.set(text, name);
    }
    return name;
  }
}

/**
 * The process id that the connection was told when the session began. If a pooler is in between, it is a number of the
 * pooler, and differs from `pg_backend_pid()`.
 */
export function processIdOf(client: pg.ClientBase): number | undefined {
  return (client as unknown as { readonly processID?: number }).processID;
}

/** Runs `then` after the answers that have arrived: in a stalled process timers fire before the sockets are read. */
export function afterReading(then: () => void): void {
  setImmediate(then);
}

function isPlain(value: unknown): value is Value {
  return typeof value !== 'object' || value === null || value instanceof Buffer;
}
