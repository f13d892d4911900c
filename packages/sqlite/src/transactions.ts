import type { Call } from '@locks/core/backend';
import { LockError } from '@locks/core';
import { explainFailure, isBusy, SqliteFileError } from './file-error.ts';
import { type LockFile, rollBack } from './lock-file.ts';
import type { Steps } from './steps.ts';

/** What one step leaves to do once its transaction is committed. */
export type AfterCommit = () => void;

interface Operation {
  readonly call: Call;
  readonly readsOnly: boolean;
  /** Runs inside a transaction; may run again in another one if that was rolled back. */
  readonly run: (steps: Steps) => AfterCommit;
  readonly fail: (error: unknown) => void;
}

/** A transaction ends after this long and the rest waits for the next turn of the event loop. */
const sliceMs = 4;
const identityCheckEveryMs = 1_000;
const sweepEvery = 256;

/**
 * All that one backend object does in its file. Operations that come together share a transaction; while other
 * processes have the file, all of them wait as one, off the event loop, with growing pauses.
 */
export class Transactions {
  readonly #path: string;
  readonly #open: () => { readonly file: LockFile; readonly steps: Steps };
  #file: LockFile | undefined;
  #steps: Steps | undefined;
  #pending: Operation[] = [];
  #scheduled = false;
  #retryTimer: NodeJS.Timeout | undefined;
  #busyTries = 0;
  #identityCheckedAt = 0;
  #sinceSweep = sweepEvery;
  #closed = false;

  constructor(path: string, open: () => { readonly file: LockFile; readonly steps: Steps }) {
    this.#path = path;
    this.#open = open;
  }

  /** Runs `step` in a write transaction; `settle` sees its result right after the commit. */
  write<T>(call: Call, step: (steps: Steps) => T, settle?: (result: T) => void): Promise<T> {
    return this.#submit(call, false, step, settle);
  }

  /** Runs `step` in a transaction that sees one state of the file and hinders nobody. */
  read<T>(call: Call, step: (steps: Steps) => T): Promise<T> {
    return this.#submit(call, true, step);
  }

  #submit<T>(
    call: Call,
    readsOnly: boolean,
    step: (steps: Steps) => T,
    settle?: (result: T) => void,
  ): Promise<T> {
    if (this.#closed) return Promise.reject(closedError());
    return new Promise<T>((resolve, reject) => {
      const run = (steps: Steps): AfterCommit => {
        const result = step(steps);
        return () => {
          settle?.(result);
          resolve(result);
        };
      };
      this.#pending.push({ call, readsOnly, run, fail: reject });
      this.#schedule();
    });
  }

  /**
   * Runs `look` on the file as it is, if it is open and not busy now; else gives undefined. `version` changes when
   * another process has changed the file. What is seen is a hint: every step checks again in its own transaction.
   */
  look<T>(look: (steps: Steps, version: number) => T): T | undefined {
    const file = this.#file;
    const steps = this.#steps;
    if (file === undefined || steps === undefined) return undefined;
    const { statements } = file;
    try {
      const version = Number(statements.dataVersion.get()?.data_version);
      return look(steps, version);
    } catch (error) {
      if (isBusy(error)) return undefined;
      throw explainFailure(file.path, error);
    }
  }

  /** One try, now, without waiting: for the last words at close. */
  close(lastWords: (steps: Steps) => void): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#retryTimer);
    for (const operation of this.#pending.splice(0)) operation.fail(closedError());
    const file = this.#file;
    if (file === undefined || this.#steps === undefined) return;
    try {
      file.statements.begin.run();
      lastWords(this.#steps);
      file.statements.commit.run();
    } catch {
      // Busy or broken: what is left ends by its time.
      rollBack(() => file.statements.rollback.run());
    }
    this.#dropFile();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // After the current run of code, so that what comes together goes together.
    queueMicrotask(() => this.#drain());
  }

  #drain(): void {
    this.#scheduled = false;
    if (this.#closed) return;
    if (this.#busyTries > 0) this.#dropOverdue();
    const batch = this.#pending.splice(0);
    if (batch.length === 0) return;
    let committed: readonly AfterCommit[];
    try {
      committed = this.#transact(batch, batch.length > 1);
    } catch (error) {
      this.#afterFailure(batch, error);
      return;
    }
    this.#busyTries = 0;
    if (committed.length < batch.length) {
      this.#pending.unshift(...batch.slice(committed.length));
      this.#later(() => setImmediate(() => this.#drain()));
    }
    for (const settle of committed) settle();
  }

  /** Commits operations from the first on, as many as time allows. Throws when nothing of them was done. */
  #transact(batch: readonly Operation[], divisible: boolean): readonly AfterCommit[] {
    const steps = this.#ready();
    const { statements } = this.#file as LockFile;
    const readsOnly = batch.every((operation) => operation.readsOnly);
    (readsOnly ? statements.beginRead : statements.begin).run();
    const started = performance.now();
    const afterCommit: AfterCommit[] = [];
    try {
      for (const operation of batch) {
        afterCommit.push(operation.run(steps));
        if (divisible && performance.now() - started > sliceMs) break;
      }
      if (!readsOnly) this.#sinceSweep += afterCommit.length;
      if (!readsOnly && this.#sinceSweep >= sweepEvery) {
        this.#sinceSweep = 0;
        steps.sweep();
      }
      statements.commit.run();
    } catch (error) {
      rollBack(() => statements.rollback.run());
      throw error;
    }
    return afterCommit;
  }

  #ready(): Steps {
    const now = performance.now();
    if (this.#file !== undefined && now - this.#identityCheckedAt > identityCheckEveryMs) {
      this.#identityCheckedAt = now;
      // Deleted or replaced: go on in the new file, where all others are or will be. Renewals will say what was lost.
      if (!this.#file.isInPlace()) this.#dropFile();
    }
    if (this.#file === undefined || this.#steps === undefined) {
      const opened = this.#open();
      this.#file = opened.file;
      this.#steps = opened.steps;
      this.#identityCheckedAt = now;
    }
    return this.#steps;
  }

  #afterFailure(batch: readonly Operation[], error: unknown): void {
    if (isBusy(error)) {
      this.#pending.unshift(...batch);
      this.#retryLater();
      return;
    }
    if (batch.length > 1 && this.#file !== undefined) {
      // One of them cannot be done: it must not take the others with it.
      for (const [index, operation] of batch.entries()) {
        try {
          for (const settle of this.#transact([operation], false)) settle();
        } catch (own) {
          if (isBusy(own)) {
            this.#pending.unshift(...batch.slice(index));
            this.#retryLater();
            return;
          }
          this.#fail([operation], own);
        }
      }
      return;
    }
    this.#fail(batch, error);
  }

  #fail(batch: readonly Operation[], error: unknown): void {
    const told = error instanceof Error ? explainFailure(this.#path, error) : error;
    // A connection that has seen a failure of the file is not trusted again: the next call opens anew.
    this.#dropFile();
    for (const operation of batch) operation.fail(told);
  }

  #retryLater(): void {
    this.#busyTries += 1;
    // Others hold the file for less than a millisecond as a rule: twice at once, then with pauses up to 8 ms.
    if (this.#busyTries <= 2) {
      this.#later(() => setImmediate(() => this.#drain()));
      return;
    }
    const pause = Math.min(8, 2 ** (this.#busyTries - 3)) * (0.5 + Math.random());
    this.#later(() => {
      this.#retryTimer = setTimeout(() => this.#drain(), pause);
    });
  }

  #later(start: () => void): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    start();
  }

  #dropOverdue(): void {
    const waiting = this.#pending.splice(0);
    for (const operation of waiting) {
      const { call } = operation;
      if (call.signal?.aborted) operation.fail(call.signal.reason);
      else if (call.now() >= call.deadline) operation.fail(busyError(this.#path));
      else this.#pending.push(operation);
    }
  }

  #dropFile(): void {
    const file = this.#file;
    this.#file = undefined;
    this.#steps = undefined;
    try {
      file?.close();
    } catch {
      // Nothing more can be done with it.
    }
  }
}

function closedError(): LockError {
  return new LockError('LOCK_CLOSED', 'this SQLite backend was closed: create another one', {
    backend: 'sqlite',
  });
}

function busyError(path: string): SqliteFileError {
  return new SqliteFileError(
    'BUSY',
    `lock file ${path}: other processes kept it busy until the deadline of this call`,
  );
}
