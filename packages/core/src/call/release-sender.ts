import { setTimeout as delay } from 'node:timers/promises';
import { NoAnswerError } from '../backend/time-limit.ts';
import type { Call, LockBackend } from '../backend/types.ts';
import { CallContext, dropped, INTERRUPTED } from './call-context.ts';
import { type CallDeadlines, INTERRUPTED_AT_ONCE, NEVER } from './call-deadlines.ts';
import { Failure } from './failure.ts';

/** How long a release or an abandon is repeated, in milliseconds, unless the backend names a time (docs/spec.md §2.5). */
const BUDGET_MS = 1_000;
/** After this part of the budget the call is sent once more; the first of the sendings that is answered counts. */
const RESEND_PART = 0.35;
const BACKOFF_MS = 20;
/**
 * The budget grows by this for each other unanswered release and abandon: ten thousand may be sent in one iteration of the event loop,
 * and the last one is answered after all the others.
 */
const EACH_UNANSWERED_MS = 5;
/** The shortest time between two looks at whether the store has been silent for as long. */
const SHORTEST_CHECK_MS = 10;

/** Sends the releases and abandons of a manager, each until it is answered. */
export class ReleaseSender {
  readonly #backend: LockBackend;
  readonly #deadlines: CallDeadlines;
  readonly #isRetryable: (error: unknown) => boolean;
  readonly #unanswered = new Set<CallContext>();
  /** When the store last answered one of them. */
  #answeredAt = Number.NEGATIVE_INFINITY;
  /** When one of them was last given up, and the store had answered none since it was sent. */
  #silentAt = Number.NEGATIVE_INFINITY;
  /** The number of those that have not ended: `settle` waits for them. */
  #underWay = 0;
  #onIdle: (() => void) | undefined;
  /** When the manager began to close. */
  #settlingSince = Number.POSITIVE_INFINITY;
  /** The silence of the store that a manager which closes waits for. */
  #silenceMs = 0;

  constructor(backend: LockBackend, deadlines: CallDeadlines, isRetryable: (error: unknown) => boolean) {
    this.#backend = backend;
    this.#deadlines = deadlines;
    this.#isRetryable = isRetryable;
  }

  /** Announces a call that is sent later. `leave` follows when it has ended. */
  enter(): void {
    this.#underWay += 1;
  }

  leave(): void {
    this.#underWay -= 1;
    if (this.#underWay === 0) this.#onIdle?.();
  }

  /**
   * Sends a release or an abandon until it is answered, or until its budget is used up. The first of many has the budget of one: if
   * the store answers none meanwhile, the others do not wait for longer either. The time for which the event loop stood still is not
   * taken from the budget.
   *
   * @param conclude - makes the outcome of the answer, or of the last failure, and of the number of sendings
   * @param latest - when the call has nothing left to end
   */
  async send<T, R>(
    send: (call: Call) => Promise<T>,
    conclude: (answer: T | Failure, sendings: number) => R,
    startedAt: number,
    latest: number,
  ): Promise<R> {
    this.enter();
    /** The time for which the event loop stood still. */
    let stalledMs = 0;
    const unanswered = this.#unanswered;
    const { clock } = this.#deadlines;
    const isFirst = unanswered.size === 0;
    /** How many others had no answer at most. */
    let others = 0;
    const budgetMs = (): number => {
      others = Math.max(others, unanswered.size - 1);
      const isAnswering = isFirst ? this.#answeredAt > startedAt : this.#answeredAt >= this.#silentAt;
      return (this.#backend.releaseBudgetMs ?? BUDGET_MS) + (isAnswering ? others * EACH_UNANSWERED_MS : 0);
    };
    const giveUpAt = (): number => Math.min(latest, startedAt + stalledMs + budgetMs(), this.#endsAt);
    /** The earlier sendings: never resolves where they fail. */
    let earlier: Promise<T> | undefined;
    for (let sendings = 1, now = startedAt; ; sendings += 1, now = clock.now()) {
      const resendAt = Math.min(giveUpAt(), now + RESEND_PART * budgetMs());
      const context = new CallContext(this.#deadlines, resendAt, undefined, NEVER, latest, now);
      unanswered.add(context);
      let sent = undefined as Promise<T> | undefined;
      const answer = await context.answerOf(() => {
        sent = send(context);
        if (earlier !== undefined) sent = Promise.race([earlier, sent]);
        return sent;
      }, dropped);
      context.done();
      unanswered.delete(context);
      let failure: Failure;
      if (answer === INTERRUPTED) {
        earlier = sent?.catch(() => new Promise<never>(() => {}));
        failure = new Failure(new NoAnswerError('the store did not answer in time'));
      } else if (answer instanceof Failure) failure = answer;
      else {
        this.#answeredAt = clock.now();
        this.leave();
        return conclude(answer, sendings);
      }
      // A client may have failed after a stall before the timer of this call fired.
      context.isOver(clock.now());
      stalledMs += Math.max(0, context.endsAt - resendAt);
      const pauseMs = BACKOFF_MS * sendings;
      const mayRepeat = answer === INTERRUPTED || this.#isRetryable(failure.error);
      const pausedAt = clock.now();
      if (mayRepeat && pausedAt + pauseMs < giveUpAt()) {
        await delay(pauseMs);
        stalledMs += clock.now() - pausedAt - pauseMs;
        // The lease may have ended during a stall of the event loop.
        if (clock.now() < giveUpAt()) continue;
      }
      // Once for all that were sent before the verdict: each of thousands would interrupt all the others again.
      if (answer === INTERRUPTED && Math.max(this.#answeredAt, this.#silentAt) <= startedAt)
        void this.reportSilence();
      this.leave();
      return conclude(failure, sendings);
    }
  }

  /** When the store's silence ends all of them, because the manager closes. */
  get #endsAt(): number {
    return Math.max(this.#settlingSince, this.#answeredAt) + this.#silenceMs;
  }

  /**
   * Waits for the answers to all releases and abandons of a manager that closes. Resolves with whether they came before the store was
   * silent for `silenceMs`.
   */
  async settle(silenceMs: number): Promise<boolean> {
    const { clock } = this.#deadlines;
    this.#settlingSince = clock.now();
    this.#silenceMs = silenceMs;
    if (this.#underWay === 0) return true;
    return await new Promise<boolean>((resolve) => {
      let cancel = (): void => {};
      const check = (dueAt: number): void => {
        const now = clock.now();
        // The time for which the event loop stood still does not count (docs/spec.md §2.9).
        this.#settlingSince += now - dueAt;
        const leftMs = this.#endsAt - now;
        if (leftMs <= 0) return resolve(false);
        const nextAt = now + Math.max(leftMs / 2, SHORTEST_CHECK_MS);
        cancel = this.#deadlines.at(nextAt, () => check(nextAt));
      };
      this.#onIdle = () => {
        cancel();
        resolve(true);
      };
      check(this.#settlingSince);
    });
  }

  /** Interrupts all sendings. */
  async reportSilence(): Promise<void> {
    this.#silentAt = this.#deadlines.clock.now();
    let interrupted = 0;
    for (const context of [...this.#unanswered]) {
      context.interrupt('deadline');
      interrupted += 1;
      if (interrupted % INTERRUPTED_AT_ONCE === 0) await nextIteration();
    }
  }
}

function nextIteration(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
