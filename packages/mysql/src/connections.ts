import type { Pool, PoolConnection } from 'mysql2';
import { isCollision, NoAnswerError } from './mysql-error.ts';

/** A row as it came, column by column; nothing of the user's settings about types is applied. */
export type Cells = readonly Buffer[];

export interface WriteResult {
  /** How many rows the statement changed, or found as they should be. */
  readonly rows: number;
  /** What `LAST_INSERT_ID(…)` was given last. */
  readonly value: number;
}

/** One connection of the pool, for as long as it is lent. */
export interface Session {
  write(sql: string): Promise<WriteResult>;
  read(sql: string): Promise<readonly Cells[]>;
}

const lateAnswerMs = 1_000;
const longestPauseMs = 40;
const mostCollisions = 8;
/** A flag of the server's answers: the connection has a transaction that is not over. */
const inTransaction = 1;

/**
 * The pool, with a limit of time on everything. Each statement is a transaction of its own, whatever `autocommit` says, and is
 * repeated when it collided with another (docs/backends/mysql.md).
 */
export class Connections {
  readonly #pool: () => Pool;
  readonly #limitMs: number;

  constructor(pool: () => Pool, limitMs: number) {
    this.#pool = pool;
    this.#limitMs = limitMs;
  }

  write(sql: string, withinMs: number): Promise<WriteResult> {
    return this.session(withinMs, (session) => session.write(sql));
  }

  read(sql: string, withinMs: number): Promise<readonly Cells[]> {
    return this.session(withinMs, (session) => session.read(sql));
  }

  /** Runs `work` on one connection; all of it again when it collided with somebody else's transaction. */
  async session<T>(withinMs: number, work: (session: Session) => Promise<T>): Promise<T> {
    // Beyond the call's own end: a grant that comes too late must be heard of, for it is to be given back.
    const endsAt = performance.now() + Math.min(Math.max(withinMs, lateAnswerMs), this.#limitMs);
    for (let collisions = 1; ; collisions += 1) {
      try {
        return await this.#once(endsAt, work);
      } catch (error) {
        if (!isCollision(error) || collisions >= mostCollisions) throw error;
        // The server chose this one to give way: after a random pause the two do not meet again.
        const pauseMs = Math.random() * Math.min(2 ** collisions, longestPauseMs);
        if (performance.now() + pauseMs >= endsAt) throw error;
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }

  async #once<T>(endsAt: number, work: (session: Session) => Promise<T>): Promise<T> {
    const lent = new LentConnection(await this.#connect(endsAt), endsAt);
    try {
      const result = await work(lent);
      await lent.giveBack();
      return result;
    } catch (error) {
      await lent.giveBack().catch(() => lent.destroy());
      throw error;
    }
  }

  #connect(endsAt: number): Promise<PoolConnection> {
    return new Promise((resolve, reject) => {
      let waiting = true;
      const timer = setTimeout(() => {
        waiting = false;
        reject(new NoAnswerError('no connection of the pool came free, or none could be made, in time'));
      }, leftUntil(endsAt));
      this.#pool().getConnection((error, connection) => {
        clearTimeout(timer);
        if (!waiting) {
          if (!error) connection.release();
        } else if (error) reject(error);
        else resolve(connection);
      });
    });
  }
}

class LentConnection implements Session {
  readonly #connection: PoolConnection;
  readonly #endsAt: number;
  #open = true;
  #mustCommit = false;
  /** A statement failed, and nothing since has told. */
  #mayBeInTransaction = false;

  constructor(connection: PoolConnection, endsAt: number) {
    this.#connection = connection;
    this.#endsAt = endsAt;
  }

  async write(sql: string): Promise<WriteResult> {
    const header = (await this.#query(sql)) as {
      readonly affectedRows: number;
      readonly insertId: number | string;
      readonly serverStatus: number;
    };
    this.#mustCommit = (header.serverStatus & inTransaction) !== 0;
    this.#mayBeInTransaction = false;
    return { rows: Number(header.affectedRows), value: Number(header.insertId) };
  }

  /** The last column must be `@@autocommit`: the answer to a query does not tell otherwise. */
  async read(sql: string): Promise<readonly Cells[]> {
    const rows = (await this.#query(sql)) as Buffer[][];
    // Without autocommit this began a transaction: left open, the next read would see the same old state.
    if (rows.some((cells) => cells.at(-1)?.toString() === '0')) this.#mustCommit = true;
    if (rows.length > 0) this.#mayBeInTransaction = false;
    return rows;
  }

  async giveBack(): Promise<void> {
    if (!this.#open) return;
    if (this.#mustCommit || this.#mayBeInTransaction) await this.write('COMMIT');
    this.#open = false;
    this.#connection.release();
  }

  destroy(): void {
    this.#open = false;
    this.#connection.destroy();
  }

  #query(sql: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        // Its answer may still come, and would be taken for that of the next statement.
        this.destroy();
        reject(new NoAnswerError('the server did not answer in time'));
      }, leftUntil(this.#endsAt));
      this.#connection.query({ sql, rowsAsArray: true, typeCast: asBuffer }, (error, result) => {
        clearTimeout(timer);
        if (!error) return resolve(result);
        // Without autocommit only the statement is undone: its transaction goes on, with the rows that it locked.
        this.#mayBeInTransaction = true;
        reject(error);
      });
    });
  }
}

function asBuffer(field: { buffer(): Buffer | null }): Buffer | null {
  return field.buffer();
}

/** A stalled event loop comes back late. */
function leftUntil(endsAt: number): number {
  return Math.max(0, endsAt - performance.now());
}
