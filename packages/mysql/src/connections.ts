import type { Socket } from 'node:net';
import { type ConnectionPool, ConnectionQueue, TimeBudget, withTimeLimit } from '@locks/core/backend';
import { URGENT, type Urgency } from '@locks/record-protocol/table';
import type { Pool, PoolConnection } from 'mysql2';
import { isCollision, isLeftBehind, isTooBigSelect, MysqlNoAnswerError } from './mysql-error.ts';

/** A row as the server sent it, column by column, whatever the settings of the pool say about types. */
export type Cells = readonly Buffer[];

export interface WriteResult {
  /** The number of rows that the statement changed, or found as they should be. */
  readonly rows: number;
  /** The last argument of `LAST_INSERT_ID(…)`. */
  readonly value: number;
}

/** A connection of the pool, while it is lent. */
export interface MysqlSession {
  write(sql: string): Promise<WriteResult>;
  read(sql: string): Promise<readonly Cells[]>;
  /** Makes sure that no transaction is open; else all of the work is done on another connection. */
  checkOutside(): Promise<void>;
}

/** The limit of mysql2's pool where its `connectionLimit` is not set. */
const DEFAULT_LIMIT = 10;
const LATE_ANSWER_MS = 1_000;
const MAX_PAUSE_MS = 40;
const MAX_COLLISIONS = 8;
/** Flags of the server's answers: the connection has a transaction that is not over; each statement is a transaction of its own. */
const IN_TRANSACTION = 1;
const AUTOCOMMIT = 2;

/** The application has returned the connection with an open transaction, which was rolled back with what we sent in it. */
class OpenTransactionError extends Error {}

/**
 * The pool, with a limit of time on everything. Each statement is a transaction of its own, whatever `autocommit` says, and is
 * repeated when it collided with another (docs/backends/mysql.md).
 */
export class Connections {
  readonly #queue: ConnectionQueue<PoolConnection>;
  readonly #limitMs: number;
  /** Whether statements override the session's `max_join_size`, which has refused one. */
  #joinsAny = false;
  #hasWarned = false;

  constructor(pool: () => Pool, limitMs: number) {
    this.#queue = new ConnectionQueue(lendingPool(pool));
    this.#limitMs = limitMs;
  }

  write(sql: string, withinMs: number): Promise<WriteResult> {
    return this.session(withinMs, (session) => session.write(sql), URGENT);
  }

  read(sql: string, withinMs: number): Promise<readonly Cells[]> {
    return this.session(withinMs, (session) => session.read(sql), URGENT);
  }

  /**
   * Runs `work` on one connection, and repeats all of it after a collision with another transaction, or on another connection where
   * the application has left a transaction or locked tables behind.
   */
  async session<T>(
    withinMs: number,
    work: (session: MysqlSession) => Promise<T>,
    urgency: Urgency,
  ): Promise<T> {
    // The wait goes on for some time after the end of the call, so that a grant that comes too late is noticed, and abandoned.
    const limitMs = Math.min(Math.max(withinMs, LATE_ANSWER_MS), this.#limitMs);
    const budget = new TimeBudget(performance.now(), limitMs);
    for (let collisions = 1; ; collisions += 1) {
      try {
        return await this.#once(budget, work, urgency);
      } catch (error) {
        if (isTooBigSelect(error) && !this.#joinsAny) {
          this.#joinsAny = true;
          continue;
        }
        if (error instanceof OpenTransactionError || isLeftBehind(error)) {
          this.#warn();
          // Each of them has ended a connection. A session that may only read looks like a transaction that may only read.
          if (error instanceof OpenTransactionError || collisions < MAX_COLLISIONS) continue;
        }
        if (!isCollision(error) || collisions >= MAX_COLLISIONS) throw error;
        // The server undid this transaction: after a random pause it does not meet the other again.
        const pauseMs = Math.random() * Math.min(2 ** collisions, MAX_PAUSE_MS);
        if (performance.now() + pauseMs >= budget.endsAt) throw error;
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }

  async #once<T>(
    budget: TimeBudget,
    work: (session: MysqlSession) => Promise<T>,
    urgency: Urgency,
  ): Promise<T> {
    const lent = new LentConnection(await this.#connect(budget, urgency), budget, this.#joinsAny);
    try {
      const result = await work(lent);
      await lent.returnToPool();
      return result;
    } catch (error) {
      if (isLeftBehind(error)) lent.destroy();
      await lent.returnToPool().catch(() => lent.destroy());
      throw error;
    } finally {
      this.#queue.returned();
    }
  }

  #warn(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    process.emitWarning(
      'A connection of the pool was returned with an open transaction, or with locked tables. @locks/mysql closes it, and the server ' +
        'rolls the transaction back. Send COMMIT or ROLLBACK before the connection is returned, also where a query failed.',
      { code: 'LOCKS_OPEN_TRANSACTION' },
    );
  }

  #connect(budget: TimeBudget, urgency: Urgency): Promise<PoolConnection> {
    let withdraw = (): void => undefined;
    const connection = new Promise<PoolConnection>((resolve, fail) => {
      withdraw = this.#queue.add({
        get priority() {
          return urgency.priority;
        },
        serve: (lent) => {
          resolve(lent);
          return true;
        },
        fail,
      });
    });
    return withTimeLimit(connection, budget, () => {
      withdraw();
      throw new MysqlNoAnswerError('no connection of the pool came free, or none could be made, in time');
    });
  }
}

/**
 * The socket of a connection. `destroy()` of mysql2 ends its own half only: where the server is frozen, the other half stays open and
 * would keep the process alive.
 */
export function socketOf(connection: PoolConnection): Pick<Socket, 'destroy' | 'unref'> | undefined {
  // `stream` is missing in the types of mysql2.
  return (connection as { readonly stream?: Socket }).stream;
}

/** mysql2's pool as the queue of connections needs it. */
export function lendingPool(pool: () => Pool): ConnectionPool<PoolConnection> {
  return {
    /** The pool's `connectionLimit`, which is missing in the types of mysql2; 0 means none. */
    get limit() {
      const { config } = pool() as { readonly config?: { readonly connectionLimit?: number } };
      return (config?.connectionLimit ?? DEFAULT_LIMIT) || Number.POSITIVE_INFINITY;
    },
    connect: (done) => pool().getConnection(done),
    release: (connection) => connection.release(),
  };
}

interface WriteHeader {
  readonly affectedRows: number;
  readonly insertId: number | string;
  readonly serverStatus: number;
}

class LentConnection implements MysqlSession {
  readonly #connection: PoolConnection;
  readonly #budget: TimeBudget;
  readonly #joinsAny: boolean;
  #open = true;
  #mustCommit = false;
  /** Whether a statement failed and no later answer has said that its transaction is over. */
  #mayBeInTransaction = false;

  constructor(connection: PoolConnection, budget: TimeBudget, joinsAny: boolean) {
    this.#connection = connection;
    this.#budget = budget;
    this.#joinsAny = joinsAny;
  }

  async write(sql: string): Promise<WriteResult> {
    const header = await this.#write(sql);
    const isOpen = (header.serverStatus & IN_TRANSACTION) !== 0;
    // A statement that is a transaction of its own leaves none open: it was part of one of the application.
    if (isOpen && (header.serverStatus & AUTOCOMMIT) !== 0) await this.#rollBack();
    this.#mustCommit = isOpen;
    this.#mayBeInTransaction = false;
    return { rows: Number(header.affectedRows), value: Number(header.insertId) };
  }

  /** Runs a query. Its last column must be `@@autocommit`, which the answer does not tell otherwise. */
  async read(sql: string): Promise<readonly Cells[]> {
    const rows = (await this.#query(sql)) as Buffer[][];
    // A query without autocommit began a transaction: if it stayed open, the next read would see the same stale state.
    if (rows.some((cells) => cells.at(-1)?.toString() === '0')) this.#mustCommit = true;
    if (rows.length > 0) this.#mayBeInTransaction = false;
    return rows;
  }

  async checkOutside(): Promise<void> {
    // A statement that begins no transaction, with or without autocommit.
    const { serverStatus } = await this.#write('DO 0');
    if ((serverStatus & IN_TRANSACTION) !== 0) await this.#rollBack();
  }

  /** Rolls the application's transaction back and ends the connection, so that nothing of it is committed without the rest. */
  async #rollBack(): Promise<never> {
    await this.#query('ROLLBACK').catch(() => undefined);
    this.destroy();
    throw new OpenTransactionError('the connection of the pool was returned with an open transaction');
  }

  #write(sql: string): Promise<WriteHeader> {
    return this.#query(sql) as Promise<WriteHeader>;
  }

  async returnToPool(): Promise<void> {
    if (!this.#open) return;
    if (this.#mustCommit || this.#mayBeInTransaction) await this.write('COMMIT');
    this.#open = false;
    this.#connection.release();
  }

  destroy(): void {
    this.#open = false;
    this.#connection.destroy();
    socketOf(this.#connection)?.unref();
  }

  #query(sql: string): Promise<unknown> {
    const answer = new Promise((resolve, reject) => {
      const text = this.#joinsAny ? joiningAny(sql) : sql;
      const options = { sql: text, rowsAsArray: true, nestTables: false, typeCast: asBuffer };
      this.#connection.query(options, (error, result) => {
        if (!error) return resolve(result);
        // A failed statement is undone alone when autocommit is off: its transaction goes on, with the rows that it locked.
        this.#mayBeInTransaction = true;
        reject(error);
      });
    });
    return withTimeLimit(answer, this.#budget, () => {
      // The answer may still come, and would be taken for that of the next statement.
      this.destroy();
      throw new MysqlNoAnswerError('the server did not answer in time');
    });
  }
}

/** The statement without the limit of `max_join_size`: a prefix of MariaDB, which MySQL takes for a comment, and a hint of MySQL. */
function joiningAny(sql: string): string {
  if (!/^(?:SELECT|INSERT|UPDATE|DELETE)\b/.test(sql)) return sql;
  return `/*M! SET STATEMENT sql_big_selects = 1 FOR */ ${sql.replace(/^\w+/, '$& /*+ SET_VAR(sql_big_selects = 1) */')}`;
}

function asBuffer(field: { buffer(): Buffer | null }): Buffer | null {
  return field.buffer();
}
