import { TimeBudget } from '../backend/time-budget.ts';
import type { Call } from '../backend/types.ts';
import { followSignal } from '../follow-signal.ts';
import type { CallDeadlines, Interruptible, Interruption } from './call-deadlines.ts';
import { Failure } from './failure.ts';

/** The abort reason of all calls, which only backends see. One for each call would be most of the cost of a wait's end. */
const GIVEN_UP = new DOMException('The caller gave up.', 'AbortError');

/** The result of {@link CallContext.answerOf} when the caller stopped waiting before the answer came. */
export const INTERRUPTED = Symbol('interrupted');

/** Drops a late answer, which leaves nothing behind. */
export const dropped = (): void => {};

/**
 * The limits of a caller's wait for answers: a deadline, the abort of the user's signal, and the end of the manager. It is the
 * `Call` that backends see, whose signal is made when a backend first reads it.
 */
export class CallContext extends TimeBudget implements Call, Interruptible {
  readonly interruptedFromPhase: number;
  heapIndex = -1;
  dueAt: number;
  readonly userSignal: AbortSignal | undefined;
  readonly #deadlines: CallDeadlines;
  #interruption: Interruption | undefined;
  #onInterrupt: (() => void) | undefined;
  #controller: AbortController | undefined;
  readonly #unfollow: (() => void) | undefined;
  #isDone = false;

  /**
   * @param interruptedFromPhase - the phase of the manager's close that ends the wait
   * @param latest - the deadline that no stall of the event loop moves
   * @param now - the present time, which the caller has just read: each reading costs an uncontended acquire some 2 %
   */
  constructor(
    deadlines: CallDeadlines,
    deadline: number,
    userSignal: AbortSignal | undefined,
    interruptedFromPhase: number,
    latest: number,
    now: number,
  ) {
    super(now, deadline - now, latest);
    this.dueAt = this.reviewAt;
    this.#deadlines = deadlines;
    this.interruptedFromPhase = interruptedFromPhase;
    this.userSignal = userSignal;
    deadlines.add(this);
    if (userSignal === undefined) return;
    if (userSignal.aborted) this.interrupt('aborted');
    else this.#unfollow = followSignal(userSignal, () => deadlines.abort(this));
  }

  /**
   * The deadline. Backends read it in the first microtasks after a stall of the event loop, before any timer has fired: the stall
   * counts by then.
   */
  get deadline(): number {
    if (!this.#isDone && this.#interruption === undefined) this.isOver(this.now());
    return this.endsAt;
  }

  /** Why the caller stopped waiting; `undefined` while it waits. */
  get interruption(): Interruption | undefined {
    // An aborted signal may not have interrupted this context yet: of thousands that share one signal, not all are interrupted
    // in one iteration of the event loop.
    if (!this.#isDone && this.userSignal?.aborted) this.interrupt('aborted');
    return this.#interruption;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#interruption !== undefined) this.#controller.abort(GIVEN_UP);
    }
    return this.#controller.signal;
  }

  now(): number {
    return this.#deadlines.clock.now();
  }

  interrupt(why: Interruption): void {
    if (this.#interruption !== undefined) return;
    this.#interruption = why;
    this.#controller?.abort(GIVEN_UP);
    this.#onInterrupt?.();
  }

  /**
   * Makes a call, and resolves with its answer, or its failure as a value; with `INTERRUPTED` as soon as the caller stops
   * waiting. A later answer goes to `late`, and a late failure is dropped. Answers of one context are waited for one after the
   * other.
   *
   * @param send - not called where the caller has stopped waiting already; may throw instead of rejecting, and may give its
   * answer without a promise
   */
  answerOf<T>(
    send: () => T | Promise<T>,
    late: (answer: T) => void,
  ): Promise<T | Failure | typeof INTERRUPTED> {
    return new Promise((resolve) => {
      if (this.interruption !== undefined) return resolve(INTERRUPTED);
      this.#onInterrupt = () => resolve(INTERRUPTED);
      try {
        Promise.resolve(send()).then(
          (answer) => {
            resolve(answer);
            if (this.#interruption !== undefined) late(answer);
          },
          (error) => resolve(new Failure(error)),
        );
      } catch (error) {
        resolve(new Failure(error));
      }
    });
  }

  /** Ends the context when its caller waits no more: nothing interrupts it, and its deadline is forgotten. */
  done(): void {
    this.#isDone = true;
    this.#onInterrupt = undefined;
    this.#deadlines.delete(this);
    this.#unfollow?.();
  }
}
