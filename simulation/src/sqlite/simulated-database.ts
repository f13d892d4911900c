import { constants } from 'node:fs';
import { DatabaseSync, type DatabaseSyncOptions, type SQLInputValue, type StatementSync } from 'node:sqlite';
import type { CurrentProcess } from '../process/process-globals.ts';
import { sqliteError } from './file-failures.ts';
import type { ProcessFiles } from './process-files.ts';

const FULL = 13;
const WRITES = /^(?:INSERT|UPDATE|DELETE|CREATE)/;

type Values = SQLInputValue[];

/** A connection of a simulated process: SQLite does the work, and the process may be interrupted at each statement. */
export class SimulatedDatabase {
  readonly #files: ProcessFiles;
  readonly #real: DatabaseSync;

  constructor(files: ProcessFiles, options: DatabaseSyncOptions) {
    this.#files = files;
    this.#real = new DatabaseSync(files.machine.options.realPath, options);
    files.opens(this);
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
    this.#files.closes(this);
    this.#real.close();
  }

  /** The process has ended: what it had begun is undone. */
  abandon(): void {
    if (this.#real.isOpen) this.#real.close();
  }

  #execute<T>(sql: string, run: () => T): T {
    const files = this.#files;
    files.statement();
    let result: T | undefined;
    const step = (): void => {
      result = run();
    };
    if (sql === 'BEGIN IMMEDIATE') files.begin(this, step);
    else if (!files.writes(this)) {
      files.reads(sql === 'PRAGMA data_version');
      step();
    } else if (sql === 'COMMIT') files.commit(step);
    else if (sql === 'ROLLBACK') files.rollback(step);
    else {
      this.#refuseIfFull(sql);
      step();
      files.stepped();
    }
    return result as T;
  }

  /** What SQLite meets on a full disk undoes the transaction. */
  #refuseIfFull(sql: string): void {
    const { world, fullUntil } = this.#files.machine;
    if (world.now >= fullUntil || !WRITES.test(sql)) return;
    throw sqliteError(FULL, 'database or disk is full');
  }
}

/** `node:sqlite` in the processes of one piece of code. */
export function sqliteOf(current: CurrentProcess) {
  return {
    DatabaseSync: class {
      constructor(_path: string, options: DatabaseSyncOptions) {
        const process = current();
        if (process.machine === undefined) throw new Error('a process without a machine has no files');
        // biome-ignore lint/correctness/noConstructorReturn: the adapter calls a constructor
        return new SimulatedDatabase(process.machine.filesOf(process), options);
      }
    },
  };
}

type Files = ProcessFiles['fs'];

const CALLS: readonly (keyof Files)[] = [
  ...['accessSync', 'realpathSync', 'statSync', 'readFileSync', 'readlinkSync', 'openSync', 'writeSync'],
  ...['closeSync', 'fchmodSync', 'fchownSync', 'rmSync', 'watch'],
] as (keyof Files)[];

/** `node:fs` in the processes of one piece of code. */
export function filesIn(current: CurrentProcess): Readonly<Record<string, unknown>> {
  const call =
    <Name extends keyof Files>(name: Name) =>
    (...given: unknown[]): unknown => {
      const process = current();
      if (process.machine === undefined) throw new Error('a process without a machine has no files');
      return Reflect.apply(process.machine.filesOf(process).fs[name] as () => unknown, undefined, given);
    };
  return { constants, ...Object.fromEntries(CALLS.map((name) => [name, call(name)])) };
}
