import { DatabaseSync, type DatabaseSyncOptions, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { sqliteError } from './file-failures.ts';

const FULL = 13;
const WRITES = /^(?:INSERT|UPDATE|DELETE|CREATE)/;

type Values = SQLInputValue[];

/** The process that has a connection: it may be interrupted at each statement. */
export interface ConnectionOwner {
  /** Where SQLite keeps the file. */
  readonly realPath: string;
  readonly isDiskFull: boolean;
  opens(connection: SimulatedDatabase): void;
  closes(connection: SimulatedDatabase, run: () => void): void;
  /** A statement of any connection begins. */
  statement(): void;
  /** A statement begins that no write transaction has. */
  reads(isPoll: boolean): void;
  /** Whether this connection has the write lock. */
  writes(connection: SimulatedDatabase): boolean;
  /** `BEGIN IMMEDIATE`. */
  begin(connection: SimulatedDatabase, run: () => void): void;
  /** A statement of a write transaction is over. */
  stepped(): void;
  commit(run: () => void): void;
  rollback(run: () => void): void;
}

/** A connection of a simulated process: SQLite does the work. */
export class SimulatedDatabase {
  readonly #owner: ConnectionOwner;
  readonly #real: DatabaseSync;

  constructor(owner: ConnectionOwner, options: DatabaseSyncOptions) {
    this.#owner = owner;
    this.#real = new DatabaseSync(owner.realPath, options);
    owner.opens(this);
  }

  exec(sql: string): void {
    this.#execute(sql, () => this.#real.exec(sql));
  }

  prepare(sql: string): Pick<StatementSync, 'run' | 'get' | 'all'> {
    // A run uses few of them.
    let prepared: StatementSync | undefined;
    const statement = (): StatementSync => (prepared ??= this.#real.prepare(sql));
    return {
      run: (...values: Values) => this.#execute(sql, () => statement().run(...values)),
      get: (...values: Values) => this.#execute(sql, () => statement().get(...values)),
      all: (...values: Values) => this.#execute(sql, () => statement().all(...values)),
    } as Pick<StatementSync, 'run' | 'get' | 'all'>;
  }

  close(): void {
    if (!this.#real.isOpen) return;
    this.#owner.closes(this, () => this.abandon());
  }

  /** The process has ended: what it had begun is undone. */
  abandon(): void {
    if (this.#real.isOpen) this.#real.close();
  }

  #execute<T>(sql: string, run: () => T): T {
    const owner = this.#owner;
    owner.statement();
    let result: T | undefined;
    const step = (): void => {
      result = run();
    };
    if (sql === 'BEGIN IMMEDIATE') owner.begin(this, step);
    else if (!owner.writes(this)) {
      owner.reads(sql === 'PRAGMA data_version');
      step();
    } else if (sql === 'COMMIT') owner.commit(step);
    else if (sql === 'ROLLBACK') owner.rollback(step);
    else {
      this.#refuseIfFull(sql);
      step();
      owner.stepped();
    }
    return result as T;
  }

  /** What SQLite meets on a full disk undoes the transaction. */
  #refuseIfFull(sql: string): void {
    if (!this.#owner.isDiskFull || !WRITES.test(sql)) return;
    throw sqliteError(FULL, 'database or disk is full');
  }
}
