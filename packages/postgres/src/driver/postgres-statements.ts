import { createHash } from 'node:crypto';
import { type Call, ConnectionQueue, NoAnswerError, PRIORITIES, type Priority } from '@locks/core/backend';
import type { PooledConnection, PostgresDriver, TextResult, Value } from './postgres-driver.ts';
import { isStrangeStatement } from './server-error.ts';

/** The silence after which a connection counts as broken, whatever TCP says. */
const ANSWER_MS = 5_000;

/** The delay of an error after the caller's deadline: the caller's own timer then reports first, and its error says more. */
const GRACE_MS = 100;

/** The interval at which statements without an answer are checked. */
const WATCH_MS = 50;

export const noResult: TextResult = { rows: [], count: 0 };

export interface StatementResult extends TextResult {
  /** The time when a connection was free and before the statement was sent, on the caller's clock. */
  readonly sentAt: number;
  /** The server process that answered, as the connection was told. */
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
  readonly values: readonly Value[];
  /** The present time, read just now on the caller's clock. */
  readonly sentAt: number;
  /** The longest wait for the answer, in milliseconds. */
  readonly leftMs: number;
}

/** Makes a statement when a connection is free; `undefined`: nobody wants its result any more. */
export type MakeStatement = () => OutgoingStatement | undefined;

/** A statement that was sent and has no answer yet. */
interface SentStatement {
  readonly end: (error: Error) => void;
  /** The time until which the answer is waited for, on `performance.now()`. */
  readonly until: number;
}

/** Single statements on the connections of a pool. */
export class PostgresStatements {
  readonly driver: PostgresDriver;
  readonly #queue: ConnectionQueue<PooledConnection>;
  /** Whether statements are prepared, once for each connection; `false` if a pooler lends connections by transaction. */
  prepare = false;
  readonly #names = new Map<string, string>();
  readonly #sent = new Set<SentStatement>();
  #watcher: NodeJS.Timeout | undefined;

  constructor(driver: PostgresDriver) {
    this.driver = driver;
    this.#queue = new ConnectionQueue(driver.pool);
  }

  /** Runs one statement. A connection that gives no answer until the caller's deadline, or for 5 s, is closed. */
  async run(
    text: string,
    values: readonly Value[],
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
      const serve = (connection: PooledConnection): boolean => {
        const statement = make();
        if (statement === undefined) resolve(undefined);
        else this.#send(connection, statement, resolve, reject);
        return statement !== undefined;
      };
      this.#queue.add({ priority, serve, fail: reject });
    });
  }

  #send(
    connection: PooledConnection,
    { text, values, sentAt, leftMs }: OutgoingStatement,
    resolve: (result: StatementResult) => void,
    reject: (error: Error) => void,
  ): void {
    const end = (error: Error | null | undefined, result: TextResult = noResult): void => {
      if (!this.#sent.delete(sent)) return;
      connection.release(error);
      this.#queue.returned();
      if (!error) {
        const { rows, count } = result;
        return resolve({ rows, count, sentAt, processId: connection.processId });
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
    connection.send(this.prepare ? { name: this.#nameOf(text), text, values } : { text, values }, end);
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

/** Runs `then` after the answers that have arrived: in a stalled process timers fire before the sockets are read. */
export function afterReading(then: () => void): void {
  setImmediate(then);
}
