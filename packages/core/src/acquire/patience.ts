import type { Call } from '../backend/types.ts';
import { followSignal } from '../follow-signal.ts';
import type { Patiences } from './patiences.ts';

/** Why a caller stopped waiting. */
export type Interruption = 'deadline' | 'aborted' | 'closed';

/** What {@link Patience.guard} gives when the caller stopped waiting before the work was done. */
export const INTERRUPTED = Symbol('interrupted');

/**
 * How long one caller is ready to wait: until a deadline, its abort signal, or the end of the manager. It is also the
 * `Call` that a backend sees, whose signal is made only when somebody looks.
 */
export class Patience implements Call {
  readonly deadline: number;
  /** Core's own: not ended by the end of the manager. */
  readonly background: boolean;
  readonly #all: Patiences;
  /** The caller's own. */
  readonly userSignal: AbortSignal | undefined;
  #interruption: Interruption | undefined;
  #interruptGuard: (() => void) | undefined;
  #controller: AbortController | undefined;
  #unfollow: (() => void) | undefined;

  constructor(all: Patiences, deadline: number, userSignal?: AbortSignal, background = false) {
    this.#all = all;
    this.deadline = deadline;
    this.background = background;
    this.userSignal = userSignal;
    all.add(this);
    if (userSignal === undefined) return;
    if (userSignal.aborted) this.interrupt('aborted');
    else this.#unfollow = followSignal(userSignal, () => this.interrupt('aborted'));
  }

  get interruption(): Interruption | undefined {
    return this.#interruption;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#interruption !== undefined) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  now(): number {
    return this.#all.clock.now();
  }

  interrupt(why: Interruption | undefined): void {
    if (this.#interruption !== undefined || why === undefined) return;
    this.#interruption = why;
    this.#controller?.abort();
    this.#interruptGuard?.();
  }

  /**
   * The outcome of `work`, or `INTERRUPTED` as soon as the caller stops waiting. A value that comes after that goes to
   * `tooLate`, and an error is dropped.
   */
  guard<T>(
    work: Promise<T>,
    failed?: (error: unknown) => T,
    tooLate?: (value: T) => void,
  ): Promise<T | typeof INTERRUPTED> {
    return new Promise((resolve, reject) => {
      if (this.#interruption !== undefined) resolve(INTERRUPTED);
      else this.#interruptGuard = () => resolve(INTERRUPTED);
      work.then(
        (value) => {
          resolve(value);
          if (this.#interruption !== undefined) tooLate?.(value);
        },
        failed === undefined ? reject : (error) => resolve(failed(error)),
      );
    });
  }

  /** The waiting is over, one way or the other. */
  done(): void {
    this.#interruptGuard = undefined;
    this.#all.delete(this);
    this.#unfollow?.();
  }
}
