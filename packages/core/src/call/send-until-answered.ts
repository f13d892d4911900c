import { setTimeout as delay } from 'node:timers/promises';
import { NoAnswerError } from '../backend/time-limit.ts';
import type { Call, LockBackend } from '../backend/types.ts';
import { CallContext, INTERRUPTED } from './call-context.ts';
import { type CallDeadlines, NEVER } from './call-deadlines.ts';
import { Failure } from './failure.ts';

/** How long a release or an abandon is repeated, in milliseconds, unless the backend names a time (docs/spec.md §2.5). */
const BUDGET_MS = 1_000;
/** After this part of the budget the call is sent once more; the first of the sendings that is answered counts. */
const RESEND_PART = 0.35;
const BACKOFF_MS = 20;
/**
 * The budget grows by this for each unanswered release and abandon, while the store answers others: ten thousand may be sent in
 * one turn of the event loop.
 */
const EACH_UNANSWERED_MS = 5;

/** The state that the releases and abandons of a manager share. */
export interface Sending {
  readonly backend: LockBackend;
  readonly deadlines: CallDeadlines;
  /** The number of releases and abandons without an answer. */
  unanswered: number;
  /** When the store last answered a release or an abandon. */
  answeredAt: number;
  isRetryable(error: unknown): boolean;
}

/**
 * Sends a release or an abandon until it is answered, or until its budget is used up.
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
  const { backend, deadlines } = sending;
  const { clock } = deadlines;
  /** The answer of the earlier sendings; never resolves where they fail. */
  let earlier: Promise<T> | undefined;
  /** The last sending, where the store answers others meanwhile: it is waited for once more, and not sent again. */
  let queued: Promise<T> | undefined;
  sending.unanswered += 1;
  const isAnswering = (): boolean => sending.answeredAt > startedAt;
  /** The most other releases and abandons that had no answer at a time. */
  let others = 0;
  const budgetMs = (): number => {
    others = Math.max(others, sending.unanswered - 1);
    return (backend.releaseBudgetMs ?? BUDGET_MS) + (isAnswering() ? others * EACH_UNANSWERED_MS : 0);
  };
  const giveUpAt = (): number => Math.min(latest, startedAt + budgetMs());
  const resendAt = (now: number): number => Math.min(giveUpAt(), now + RESEND_PART * budgetMs());
  const end = (answer: T | Failure, sendings: number): R => {
    sending.unanswered -= 1;
    return conclude(answer, sendings);
  };
  for (let sendings = 1, now = startedAt; ; now = clock.now()) {
    const context = new CallContext(deadlines, resendAt(now), undefined, NEVER);
    let sent = queued;
    const answer = await context.answerOf(() => {
      if (sent !== undefined) return sent;
      sent = send(context);
      if (earlier !== undefined) sent = Promise.race([earlier, sent]);
      return sent;
    });
    context.done();
    let failure: Failure;
    if (answer === INTERRUPTED) {
      failure = new Failure(new NoAnswerError('the store did not answer in time'));
    } else if (answer instanceof Failure) failure = answer;
    else {
      sending.answeredAt = clock.now();
      return end(answer, sendings);
    }
    const pauseMs = BACKOFF_MS * sendings;
    const mayRepeat = answer === INTERRUPTED || sending.isRetryable(failure.error);
    if (!mayRepeat || clock.now() + pauseMs >= giveUpAt()) return end(failure, sendings);
    if (answer === INTERRUPTED && queued === undefined && isAnswering()) {
      queued = sent;
      continue;
    }
    if (answer === INTERRUPTED) earlier = sent?.catch(() => new Promise<never>(() => {}));
    queued = undefined;
    await delay(pauseMs);
    // After a stall of the event loop there may be no time left.
    if (clock.now() >= giveUpAt()) return end(failure, sendings);
    sendings += 1;
  }
}
