import { createHash } from 'node:crypto';
import { type Call, ConnectionQueue, NoAnswerError, PRIORITIES, type Priority } from '@locks/core/backend';
import { IN_FAILED_TRANSACTION, OpenTransactionError } from './open-transaction.ts';
import { OwnConnections } from './own-connections.ts';
import {
  canOpen,
  type OpeningDriver,
  type PooledConnection,
  type PostgresDriver,
  type TextResult,
  type Value,
} from './postgres-driver.ts';
import { codeOf, isStrangeStatement } from './server-error.ts';

/** The silence after which a connection counts as broken, whatever TCP says. */
const ANSWER_MS = 5_000;

/** The delay of an error after the caller's deadline: the caller's own timer then reports first, and its error says more. */
const GRACE_MS = 100;

/** The interval at which statements without a connection or an answer are checked. */
const WATCH_MS = 50;

/**
 * The time after which a renewal or a release no longer waits for the pool, all of whose connections the application may hold
 * for longer than a ttl.
 */
const OVERDUE_MS = 100;

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

/** A free connection, for one statement: whoever has it sends the statement, or gives the connection back. */
export interface FreeConnection {
  send(statement: OutgoingStatement): Promise<StatementResult>;
  giveBack(): void;
}

/** A statement that was sent and has no answer yet. */
interface SentStatement {
  readonly end: (error: Error) => void;
  /** The time until which the answer is waited for, on `performance.now()`. */
  until: number;
}

/** A request for a connection whose caller holds a lock. */
interface UrgentRequest {
  /** Adds the request to a queue. @returns a function that takes it back */
  readonly addTo: (queue: ConnectionQueue<PooledConnection>) => () => void;
  takeBack: () => void;
  /** The time from which the request no longer waits for the pool, on `performance.now()`. */
  overdueAt: number;
}

/**
 * Single statements on the connections of a pool. Those of holders that get none in time go over a connection outside of the
 * pool.
 */
export class PostgresStatements {
  readonly driver: PostgresDriver;
  readonly #queue: ConnectionQueue<PooledConnection>;
  /** Whether statements are prepared, once for each connection; `false` if a pooler lends connections by transaction. */
  prepare = false;
  readonly #names = new Map<string, string>();
  readonly #sent = new Set<SentStatement>();
  /** Those that wait for a connection of the pool, the oldest first. */
  readonly #urgent = new Set<UrgentRequest>();
  /** How many statements wait for a connection of the pool, and since when none was served, on `performance.now()`. */
  #waiting = 0;
  #unservedSince = 0;
  #reserve: { readonly pool: OwnConnections; readonly queue: ConnectionQueue<PooledConnection> } | undefined;
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
    priority: Priority,
  ): Promise<StatementResult> {
    const late = call.now() >= call.deadline;
    const connection = await this.connection(priority);
    const sentAt = call.now();
    const leftMs = late ? ANSWER_MS : call.deadline - sentAt;
    if (leftMs > 0) return await connection.send({ text, values, sentAt, leftMs });
    // The deadline passed in the queue: after an outage, statements that nobody waits for are not sent.
    connection.giveBack();
    return await new Promise((_, reject) => rejectLate(reject));
  }

  /** Resolves when a connection is free. A statement is made then, of all that has come until then. */
  connection(priority: Priority): Promise<FreeConnection> {
    return new Promise((resolve, reject) => {
      const addTo: UrgentRequest['addTo'] = (queue) =>
        queue.add({
          priority,
          serve: (connection) => {
            this.#urgent.delete(urgent);
            if (queue === this.#queue) this.#served();
            resolve({
              send: (statement) =>
                new Promise((done, failed) => this.#send(queue, connection, statement, done, failed)),
              giveBack: () => {
                connection.release(undefined);
                queue.returned();
              },
            });
            return true;
          },
          fail: (error) => {
            const wasUrgent = this.#urgent.delete(urgent);
            if (queue === this.#queue) this.#served();
            if (wasUrgent && isPoolTimeout(error)) this.#addToReserve(urgent);
            else reject(error);
          },
        });
      const urgent: UrgentRequest = {
        addTo,
        takeBack: () => undefined,
        overdueAt: performance.now() + OVERDUE_MS,
      };
      if (priority === PRIORITIES.holder && canOpen(this.driver)) {
        this.#urgent.add(urgent);
        this.#watch();
      }
      if (this.#waiting === 0) this.#unservedSince = performance.now();
      this.#waiting += 1;
      urgent.takeBack = addTo(this.#queue);
    });
  }

  /** The error that explains a missing answer, while no connection of the pool becomes free. */
  get shortage(): Error | undefined {
    const sinceMs = performance.now() - this.#unservedSince;
    if (this.#waiting === 0 || sinceMs < OVERDUE_MS) return undefined;
    const { limit } = this.driver.pool;
    const all =
      limit === 1 ? 'the only connection of the pool has' : `all ${limit} connections of the pool have`;
    return new Error(
      `${all} been in use for ${Math.round(sinceMs)} ms, or none could be made: give the backend a pool of its own, or this one more connections`,
    );
  }

  #served(): void {
    this.#waiting -= 1;
    this.#unservedSince = performance.now();
  }

  async close(): Promise<void> {
    await this.#reserve?.pool.close();
    await this.driver.close();
  }

  #addToReserve({ addTo }: UrgentRequest): void {
    if (this.#reserve === undefined) {
      const pool = new OwnConnections(1, () => (this.driver as OpeningDriver).open('@locks/postgres'));
      this.#reserve = { pool, queue: new ConnectionQueue(pool) };
    }
    addTo(this.#reserve.queue);
  }

  #send(
    queue: ConnectionQueue<PooledConnection>,
    connection: PooledConnection,
    { text, values, sentAt, leftMs }: OutgoingStatement,
    resolve: (result: StatementResult) => void,
    reject: (error: Error) => void,
  ): void {
    const end = (error: Error | null | undefined, result: TextResult = noResult): void => {
      if (!this.#sent.delete(sent)) return;
      // The application sent BEGIN on a connection that it had returned: a ROLLBACK may undo the statement.
      const isUndoable = connection.isInTransaction || codeOf(error) === IN_FAILED_TRANSACTION;
      connection.release(error);
      queue.returned();
      if (isUndoable) return reject(new OpenTransactionError());
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
    if (this.#watcher !== undefined) return;
    let dueAt = performance.now() + WATCH_MS;
    this.#watcher = setInterval(() => {
      const now = performance.now();
      // While the event loop stood still nothing could arrive (docs/spec.md §2.9).
      const stalledMs = Math.max(0, now - dueAt);
      dueAt = now + WATCH_MS;
      for (const sent of this.#sent) sent.until += stalledMs;
      for (const urgent of this.#urgent) urgent.overdueAt += stalledMs;
      for (const { end, until } of this.#sent)
        if (until <= now) afterReading(() => end(new NoAnswerError('the connection gave no answer in time')));
      for (const urgent of this.#urgent) {
        if (urgent.overdueAt > now) break;
        this.#urgent.delete(urgent);
        urgent.takeBack();
        this.#waiting -= 1;
        this.#addToReserve(urgent);
      }
      if (this.#sent.size + this.#urgent.size > 0) return;
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

/** Whether pg's pool gave up to wait for a connection, by its `connectionTimeoutMillis`. */
function isPoolTimeout({ message }: Error): boolean {
  return message.startsWith('timeout exceeded when trying to connect');
}
