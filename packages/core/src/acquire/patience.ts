import type { Call } from '../backend/types.ts';
import type { Alarm, Alarms } from './alarms.ts';

/** Why a caller stopped waiting. */
export type Interruption = 'deadline' | 'aborted' | 'closed';

/** What {@link Patience.guard} gives when the caller stopped waiting before the work was done. */
export const INTERRUPTED = Symbol('interrupted');

/** The part of a manager that a patience lives in. */
export interface PatienceKeeper {
  readonly alarms: Alarms;
  readonly patiences: Set<Patience>;
  now(): number;
}

/**
 * How long one caller is ready to wait: until a deadline, its abort signal, or the end of the manager. It is also the
 * `Call` that a backend sees, whose signal is made only when somebody looks.
 */
export class Patience implements Alarm, Call {
  readonly dueAt: number;
  readonly #keeper: PatienceKeeper;
  readonly #userSignal: AbortSignal | undefined;
  #interruption: Interruption | undefined;
  #interruptGuard: (() => void) | undefined;
  #controller: AbortController | undefined;

  constructor(keeper: PatienceKeeper, dueAt: number, userSignal?: AbortSignal) {
    this.#keeper = keeper;
    this.dueAt = dueAt;
    this.#userSignal = userSignal;
    keeper.alarms.add(this);
    keeper.patiences.add(this);
    userSignal?.addEventListener('abort', this.#aborted, { once: true });
  }

  get interruption(): Interruption | undefined {
    return this.#interruption;
  }

  get deadline(): number {
    return this.dueAt;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#interruption !== undefined) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  now(): number {
    return this.#keeper.now();
  }

  /** Alarm: the deadline has come. */
  ring(): void {
    this.interrupt('deadline');
  }

  interrupt(why: Interruption): void {
    if (this.#interruption !== undefined) return;
    this.#interruption = why;
    this.#controller?.abort();
    this.#interruptGuard?.();
  }

  /**
   * The outcome of `work`, or `INTERRUPTED` as soon as the caller stops waiting. `tooLate` gets a value that comes after
   * that; an error that comes after it is dropped.
   */
  guard<T>(work: Promise<T>, tooLate?: (value: T) => void): Promise<T | typeof INTERRUPTED> {
    return new Promise((resolve, reject) => {
      if (this.#interruption !== undefined) resolve(INTERRUPTED);
      else this.#interruptGuard = () => resolve(INTERRUPTED);
      work.then((value) => {
        if (this.#interruption === undefined) resolve(value);
        else {
          resolve(INTERRUPTED);
          tooLate?.(value);
        }
      }, reject);
    });
  }

  /** The waiting is over, one way or the other. */
  done(): void {
    this.#interruptGuard = undefined;
    this.#keeper.alarms.delete(this);
    this.#keeper.patiences.delete(this);
    this.#userSignal?.removeEventListener('abort', this.#aborted);
  }

  readonly #aborted = (): void => {
    this.interrupt('aborted');
  };
}
