import { setTimeout as delay } from 'node:timers/promises';
import { NoAnswerError } from '../backend/time-limit.ts';
import type { Call, LockBackend } from '../backend/types.ts';
import { CallContext, INTERRUPTED } from './call-context.ts';
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

/** What the releases and abandons of a manager share. */
export interface Sending {
  readonly backend: LockBackend;
  readonly deadlines: CallDeadlines;
  /** Those without an answer. */
  readonly unanswered: Set<CallContext>;
  /** When the store last answered one of them. */
  answeredAt: number;
  /** When one of them was last given up, and the store had answered none since it was sent. */
  silentAt: number;
  /** When the manager, which closes, gives all of them up; `Infinity` while it is open. */
  readonly endsAt: number;
  isRetryable(error: unknown): boolean;
}

/**
 * Sends a release or an abandon until it is answered, or until its budget is used up. The first of many has the budget of one: if
 * the store answers none meanwhile, the others do not wait for longer either. The time for which the event loop stood still is not
 * taken from the budget.
 *
 * @param conclude - makes the outcome of the answer, or of the last failure, and of the number of sendings
 */
export async function sendUntilAnswered<T, R>(
  sending: Sending,
  send: (call: Call) => Promise<T>,
  conclude: (answer: T | Failure, sendings: number) => R,
  startedAt: number,
  latest = Number.POSITIVE_INFINITY,
): Promise<R> {
  /** The time for which the event loop stood still. */
  let stalledMs = 0;
  const { backend, deadlines, unanswered } = sending;
  const { clock } = deadlines;
  const isFirst = unanswered.size === 0;
  /** How many others had no answer at most. */
  let others = 0;
  const budgetMs = (): number => {
    others = Math.max(others, unanswered.size - 1);
    const isAnswering = isFirst ? sending.answeredAt > startedAt : sending.answeredAt >= sending.silentAt;
    return (backend.releaseBudgetMs ?? BUDGET_MS) + (isAnswering ? others * EACH_UNANSWERED_MS : 0);
  };
  const giveUpAt = (): number => Math.min(latest, startedAt + stalledMs + budgetMs(), sending.endsAt);
  /** The earlier sendings: never resolves where they fail. */
  let earlier: Promise<T> | undefined;
  for (let sendings = 1, now = startedAt; ; sendings += 1, now = clock.now()) {
    const resendAt = Math.min(giveUpAt(), now + RESEND_PART * budgetMs());
    const context = new CallContext(deadlines, resendAt, undefined, NEVER, latest, now);
    unanswered.add(context);
    let sent = undefined as Promise<T> | undefined;
    const answer = await context.answerOf(() => {
      sent = send(context);
      if (earlier !== undefined) sent = Promise.race([earlier, sent]);
      return sent;
    });
    context.done();
    unanswered.delete(context);
    let failure: Failure;
    if (answer === INTERRUPTED) {
      earlier = sent?.catch(() => new Promise<never>(() => {}));
      failure = new Failure(new NoAnswerError('the store did not answer in time'));
    } else if (answer instanceof Failure) failure = answer;
    else {
      sending.answeredAt = clock.now();
      return conclude(answer, sendings);
    }
    // A client may have failed after a stall before the timer of this call fired.
    context.isOver(clock.now());
    stalledMs += Math.max(0, context.endsAt - resendAt);
    const pauseMs = BACKOFF_MS * sendings;
    const mayRepeat = answer === INTERRUPTED || sending.isRetryable(failure.error);
    const pausedAt = clock.now();
    if (mayRepeat && pausedAt + pauseMs < giveUpAt()) {
      await delay(pauseMs);
      stalledMs += clock.now() - pausedAt - pauseMs;
      // The lease may have ended during a stall of the event loop.
      if (clock.now() < giveUpAt()) continue;
    }
    // Once for all that were sent before the verdict: each of thousands would interrupt all the others again.
    if (answer === INTERRUPTED && Math.max(sending.answeredAt, sending.silentAt) <= startedAt)
      void reportSilence(sending);
    return conclude(failure, sendings);
  }
}

/** Interrupts all sendings. */
export async function reportSilence(sending: Sending): Promise<void> {
  sending.silentAt = sending.deadlines.clock.now();
  let interrupted = 0;
  for (const context of [...sending.unanswered]) {
    context.interrupt('deadline');
    interrupted += 1;
    if (interrupted % INTERRUPTED_AT_ONCE === 0) await nextIteration();
  }
}

function nextIteration(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
