import { HistoryError, show } from './history-error.ts';
import { EXCLUSIVE, type HistoryEvent, type HistoryMode, isMode } from './history-event.ts';

/** The properties that a recorder reads of an acquire's result; the leases of `@locks/core` have all of them. */
export interface RecordableLease {
  /** The identity of the hold. Absent: the recorder makes one. */
  readonly acquisitionId?: string;
  /** The token of the lease, where it has one. */
  readonly fencingToken?: bigint | undefined;
  /** Aborts when the lease is lost. */
  readonly signal?: AbortSignal;
  /** The time for which the holder takes the lease to be valid, in milliseconds from the moment of reading. */
  readonly validForMs?: number;
}

/** A hold that a recorder wrote down. */
export interface RecordedHold<T> {
  readonly lease: T;
  readonly resource: string;
  /** The id of the acquisition in the history. */
  readonly acquisitionId: string;
  /**
   * Notes that the holder takes its lease for valid now, and for how long. A holder that stands still, and notes its loss late,
   * is then recorded as having given up in time. To be called before each use of the protected resource.
   *
   * @param validForMs - in milliseconds. Default: `validForMs` of the lease
   */
  confirm(validForMs?: number): void;
  /**
   * Releases by `work`, and writes down the outcome.
   * @throws what `work` rejects with
   */
  release(work: () => Promise<unknown>): Promise<void>;
  /** Notes that the holder learned of its loss; only the first counts. Nobody needs to call it for a lease with a `signal`. */
  lost(): void;
}

const REFUSALS: ReadonlySet<unknown> = new Set(
  'LOCK_TIMEOUT LOCK_CONTENDED LOCK_QUEUE_FULL LOCK_SUPERSEDED LOCK_LOST LOCK_NOT_HELD LOCK_REENTRANT LOCK_DEADLOCK LOCK_CONFLICT LOCK_UNSUPPORTED LOCK_CLOCK_SKEW LOCK_INVALID_ARGUMENT'.split(
    ' ',
  ),
);

/** The clock of the machine, the same in all its processes, in milliseconds. */
function machineNow(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

// setup: import { appendFileSync } from 'node:fs';
// setup: import { HistoryRecorder } from '@locks/history';
// setup: declare const lock: { acquire(): Promise<{ readonly acquisitionId: string; readonly fencingToken: bigint; release(): Promise<void> }> };
// setup: declare function work(): Promise<void>;
/**
 * Writes down what one process does with locks, as JSON lines: `docs/histories.md` of the repository has the format. Works with any
 * lock.
 *
 * @example
 * ```ts
 * const recorder = new HistoryRecorder('worker 1', (line) => appendFileSync('worker-1.jsonl', line));
 * const hold = await recorder.acquire('stock', () => lock.acquire());
 * if (hold !== undefined) {
 *   await work();
 *   await hold.release(() => hold.lease.release());
 * }
 * ```
 */
export class HistoryRecorder {
  readonly #process: string;
  readonly #write: (line: string) => unknown;
  readonly #now: () => number;
  #calls = 0;
  #acquisitions = 0;

  /**
   * @param processName - no other recorder of the history may have the name
   * @param write - takes one line with its line feed. Lines that must survive a crash have to be written before `write` returns
   * @param now - milliseconds on a clock that all recorders of the history share. Default: the monotonic clock of the machine
   * @throws HistoryError `LOCK_INVALID_ARGUMENT`
   */
  constructor(processName: string, write: (line: string) => unknown, now: () => number = machineNow) {
    if (typeof processName !== 'string' || processName === '')
      throw new HistoryError(`HistoryRecorder(): the process must be a text, not ${show(processName)}.`);
    if (typeof write !== 'function' || typeof now !== 'function')
      throw new HistoryError('HistoryRecorder(): write and now must be functions.');
    this.#process = processName;
    this.#write = write;
    this.#now = now;
  }

  /**
   * Acquires by `work`, and writes down the outcome. Where `work` answers `undefined` or `null`, the acquire is recorded as
   * failed, and the result is `undefined`. Where `work` rejects, the call is recorded as failed if the error has a `code` of
   * `@locks/core` that says so, such as `LOCK_TIMEOUT`; otherwise its outcome is recorded as unknown.
   *
   * @param resource - the name of the lock
   * @param mode - the mode of the acquisition. Default: exclusive
   * @throws HistoryError `LOCK_INVALID_ARGUMENT`, before `work` is called; otherwise what `work` rejects with
   */
  async acquire<T>(
    resource: string,
    work: () => Promise<T>,
    mode: HistoryMode = EXCLUSIVE,
  ): Promise<RecordedHold<NonNullable<T>> | undefined> {
    if (typeof resource !== 'string' || resource === '')
      throw new HistoryError(`acquire(): the resource must be a text, not ${show(resource)}.`);
    if (!isMode(mode)) throw new HistoryError(`acquire(): there is no such mode: ${show(mode)}.`);
    const askedAt = this.#now();
    const call = { operation: 'acquire', resource, id: (this.#calls += 1) } as const;
    this.#note({ type: 'invoke', ...call, ...(mode.kind !== 'exclusive' && { mode }) });
    let lease: T;
    try {
      lease = await work();
    } catch (error) {
      this.#noteError(call, error);
      throw error;
    }
    if (lease === undefined || lease === null) {
      this.#note({ type: 'fail', ...call });
      return undefined;
    }
    const { acquisitionId = this.#freshId(), fencingToken } = lease as RecordableLease;
    const hold = new Hold(
      lease,
      resource,
      acquisitionId,
      this.#now,
      (event) => this.#note(event),
      () => (this.#calls += 1),
      askedAt,
    );
    // The validity is read before the line is written: a process that stands still between the two records no hold that it did
    // not have.
    hold.confirm();
    this.#note({
      type: 'ok',
      ...call,
      acquisitionId,
      ...(fencingToken !== undefined && { token: String(fencingToken) }),
    });
    hold.watch();
    return hold;
  }

  /** Notes that the process ended without giving up its holds. Another process calls it, on a recorder of the same name. */
  crashed(): void {
    this.#note({ type: 'info', operation: 'crash' });
  }

  #freshId(): string {
    this.#acquisitions += 1;
    return `${this.#process}/${this.#acquisitions}`;
  }

  #noteError(call: Omit<HistoryEvent, 'type' | 'process' | 'time'>, error: unknown): void {
    this.#note({ ...outcomeOf(error), ...call });
  }

  #note(event: Omit<HistoryEvent, 'process' | 'time'>): void {
    const { type, operation, ...rest } = event;
    this.#write(
      `${JSON.stringify({ type, operation, process: this.#process, time: this.#now(), ...rest })}\n`,
    );
  }
}

class Hold<T> implements RecordedHold<T> {
  readonly lease: T;
  readonly resource: string;
  readonly acquisitionId: string;
  readonly #now: () => number;
  readonly #note: (event: Omit<HistoryEvent, 'process' | 'time'>) => void;
  readonly #nextCall: () => number;
  /** The time at which the acquire began. */
  readonly #askedAt: number;
  #validUntil = Number.POSITIVE_INFINITY;
  #isLost = false;

  constructor(
    lease: T,
    resource: string,
    acquisitionId: string,
    now: () => number,
    note: (event: Omit<HistoryEvent, 'process' | 'time'>) => void,
    nextCall: () => number,
    askedAt: number,
  ) {
    this.#askedAt = askedAt;
    this.lease = lease;
    this.resource = resource;
    this.acquisitionId = acquisitionId;
    this.#now = now;
    this.#note = note;
    this.#nextCall = nextCall;
  }

  watch(): void {
    const { signal } = this.lease as RecordableLease;
    if (signal?.aborted === true) this.lost();
    else signal?.addEventListener('abort', () => this.lost(), { once: true });
  }

  confirm(given?: number): void {
    // The clock is read before the lease: a process that stands still between the two must not add the pause to its validity.
    const now = this.#now();
    const validForMs = given ?? (this.lease as RecordableLease).validForMs;
    if (validForMs === undefined) return;
    if (typeof validForMs !== 'number' || Number.isNaN(validForMs))
      throw new HistoryError(
        `confirm(): validForMs must be a number of milliseconds, not ${show(validForMs)}.`,
      );
    // A lease that is over ended at the time up to which it was last confirmed. One that was never valid ended before its
    // grant.
    if (validForMs > 0) this.#validUntil = now + validForMs;
    else if (this.#validUntil === Number.POSITIVE_INFINITY) this.#validUntil = this.#askedAt;
  }

  async release(work: () => Promise<unknown>): Promise<void> {
    const { resource, acquisitionId } = this;
    const call = { operation: 'release', resource, acquisitionId, id: this.#nextCall() } as const;
    this.#note({ type: 'invoke', ...call });
    try {
      await work();
    } catch (error) {
      const outcome = outcomeOf(error);
      // A failed release does not end the hold. A loss does, and has to be noted before the outcome.
      if (codeOf(error) === 'LOCK_LOST') this.lost();
      this.#note({ ...outcome, ...call });
      throw error;
    }
    this.#note({ type: 'ok', ...call });
  }

  lost(): void {
    if (this.#isLost) return;
    this.#isLost = true;
    const { resource, acquisitionId } = this;
    const endedAt = this.#validUntil < this.#now() ? { endedAt: this.#validUntil } : {};
    this.#note({ type: 'info', operation: 'loss', resource, acquisitionId, ...endedAt });
  }
}

function outcomeOf(error: unknown): Pick<HistoryEvent, 'type' | 'error'> {
  return { type: REFUSALS.has(codeOf(error)) ? 'fail' : 'info', error: String(error) };
}

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null ? (error as { code?: unknown }).code : undefined;
}
