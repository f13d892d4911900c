import type { StatementSync } from 'node:sqlite';
import { type Call, closedError } from '@locks/core/backend';
import { wake } from '@locks/core/machine';
import { BusyBackoff } from './busy-backoff.ts';
import { explainFailure, isBusy, SqliteFileError } from './file-error.ts';
import { rollBack } from './lock-file.ts';
import { OpenFile, type Opened } from './open-file.ts';
import type { Steps } from './steps.ts';

/** The function to call when the transaction of a step is committed. */
export type AfterCommit = () => void;

interface Operation {
  readonly call: Call;
  readonly readsOnly: boolean;
  /** Runs inside a transaction; may run again in another one if that was rolled back. */
  readonly run: (steps: Steps) => AfterCommit;
  readonly fail: (error: unknown) => void;
}

/** The longest duration of a transaction; the rest of the operations waits for the next iteration of the event loop. */
const SLICE_MS = 4;
const SWEEP_EVERY = 256;

/**
 * All transactions of one backend object in its file. Operations that come together share a transaction; while other
 * processes have the file, all of them wait as one, off the event loop, with growing pauses.
 */
export class Transactions {
  readonly #path: string;
  readonly #file: OpenFile;
  readonly #pending: Operation[] = [];
  #scheduled = false;
  #retryTimer: NodeJS.Timeout | undefined;
  readonly #busy = new BusyBackoff();
  #sinceSweep = SWEEP_EVERY;
  #closed = false;

  constructor(path: string, open: () => Opened) {
    this.#path = path;
    this.#file = new OpenFile(open);
  }

  /** Runs `step` in a write transaction, and `committed` with its result right after the commit. */
  write<T>(call: Call, step: (steps: Steps) => T, committed: (result: T) => void): Promise<T> {
    return this.#submit(call, false, step, committed);
  }

  /** Runs `step` in a transaction that sees one state of the file and hinders nobody. */
  read<T>(call: Call, step: (steps: Steps) => T): Promise<T> {
    return this.#submit(call, true, step, () => {});
  }

  #submit<T>(
    call: Call,
    readsOnly: boolean,
    step: (steps: Steps) => T,
    committed: (result: T) => void,
  ): Promise<T> {
    if (this.#closed) return Promise.reject(closedError('sqlite'));
    return new Promise<T>((resolve, reject) => {
      const run = (steps: Steps): AfterCommit => {
        const result = step(steps);
        return () => {
          committed(result);
          resolve(result);
        };
      };
      this.#pending.push({ call, readsOnly, run, fail: reject });
      this.#schedule();
    });
  }

  /**
   * Runs `read` on the file as it is, if it is open and not busy now; else returns undefined. `version` changes when
   * another process has changed the file. What is read is a hint: every step checks again in its own transaction.
   */
  poll<T>(read: (steps: Steps, version: number) => T): T | undefined {
    const { current } = this.#file;
    if (current === undefined) return undefined;
    try {
      const version = Number(current.file.statements.dataVersion.get()?.data_version);
      return read(current.steps, version);
    } catch (error) {
      if (isBusy(error)) return undefined;
      throw explainFailure(this.#path, error);
    }
  }

  /** Fails what is pending, and tries the last step once, without waiting. */
  close(lastStep: (steps: Steps) => void): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#retryTimer);
    for (const operation of this.#pending.splice(0)) operation.fail(closedError('sqlite'));
    const { current } = this.#file;
    if (current === undefined) return;
    const { statements } = current.file;
    try {
      statements.begin.run();
      lastStep(current.steps);
      statements.commit.run();
    } catch {
      // The file is busy or broken: entries that are left there expire.
      rollBack(() => statements.rollback.run());
    }
    this.#file.drop();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // The queue is drained after the current run of code, so that operations that come together share a transaction.
    queueMicrotask(() => this.#drain());
  }

  #drain(): void {
    this.#scheduled = false;
    if (this.#closed) return;
    if (this.#busy.isWaiting) this.#dropOverdue();
    const batch = this.#pending.splice(0);
    if (batch.length === 0) return;
    let committed: readonly AfterCommit[];
    try {
      committed = this.#transact(batch, batch.length > 1);
    } catch (error) {
      this.#afterFailure(batch, error);
      return;
    }
    this.#busy.succeeded();
    if (committed.length < batch.length) {
      this.#pending.unshift(...batch.slice(committed.length));
      this.#later(() => setImmediate(() => this.#drain()));
    }
    for (const finish of committed) finish();
  }

  /** Commits operations from the first on, as many as time allows. Throws when none of them was done. */
  #transact(batch: readonly Operation[], divisible: boolean): readonly AfterCommit[] {
    const { file, steps } = this.#file.ready();
    const { statements } = file;
    const readsOnly = batch.every((operation) => operation.readsOnly);
    this.#begin(readsOnly ? statements.beginRead : statements.begin);
    const started = performance.now();
    const afterCommit: AfterCommit[] = [];
    try {
      for (const operation of batch) {
        afterCommit.push(operation.run(steps));
        if (divisible && performance.now() - started > SLICE_MS) break;
      }
      if (!readsOnly) this.#sinceSweep += afterCommit.length;
      if (!readsOnly && this.#sinceSweep >= SWEEP_EVERY) {
        this.#sinceSweep = 0;
        steps.sweep();
      }
      statements.commit.run();
    } catch (error) {
      rollBack(() => statements.rollback.run());
      throw error;
    }
    for (const client of steps.queue.takeWoken()) wake(file.realPath, client);
    return afterCommit;
  }

  #begin(statement: StatementSync): void {
    const until = performance.now() + this.#busy.spinMs;
    for (;;) {
      try {
        statement.run();
        return;
      } catch (error) {
        if (!isBusy(error) || performance.now() >= until) throw error;
      }
    }
  }

  #afterFailure(batch: readonly Operation[], error: unknown): void {
    if (isBusy(error)) {
      this.#pending.unshift(...batch);
      this.#retryLater();
      return;
    }
    if (batch.length > 1 && this.#file.current !== undefined) {
      // One of the operations failed: the others must not fail with it.
      for (const [index, operation] of batch.entries()) {
        try {
          for (const finish of this.#transact([operation], false)) finish();
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
    const explained = error instanceof Error ? explainFailure(this.#path, error) : error;
    // A connection that has seen a failure of the file is not trusted again: the next call opens anew.
    this.#file.drop();
    for (const operation of batch) operation.fail(explained);
  }

  #retryLater(): void {
    const pauseMs = this.#busy.failed();
    if (pauseMs === undefined) return this.#later(() => setImmediate(() => this.#drain()));
    this.#later(() => {
      this.#retryTimer = setTimeout(() => this.#drain(), pauseMs);
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
}

function busyError(path: string): SqliteFileError {
  return new SqliteFileError(
    'BUSY',
    `lock file ${path}: other processes kept it busy until the deadline of this call`,
  );
}
