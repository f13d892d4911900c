import { setTimeout as delay } from 'node:timers/promises';
import { NoAnswerError } from '../backend/time-limit.ts';
import type { Call, LockBackend } from '../backend/types.ts';
import { CallContext, INTERRUPTED } from './call-context.ts';
import { type CallDeadlines, NEVER } from './call-deadlines.ts';
import { Failure } from './failure.ts';

/** For how long a release or an abandon is repeated, unless the backend names a time (docs/spec.md §2.5). */
const BUDGET_MS = 1_000;
/** After this part of the budget the call is sent once more; the first of the sendings that is answered counts. */
const RESEND_PART = 0.35;
const BACKOFF_MS = 20;

export interface Sending {
  readonly backend: LockBackend;
  readonly deadlines: CallDeadlines;
  isRetryable(error: unknown): boolean;
}

/**
 * Sends a release or an abandon until it is answered, or until its budget is used up.
 *
 * @param conclude - makes the outcome of the answer, or of the last failure, and of the number of sendings
 */
export async function sendUntilAnswered<T, R>(
  { backend, deadlines, isRetryable }: Sending,
  send: (call: Call) => Promise<T>,
  conclude: (answer: T | Failure, sendings: number) => R,
  startedAt: number,
  latest = Number.POSITIVE_INFINITY,
): Promise<R> {
  /** The earlier sendings: never resolves where they fail. */
  let unanswered: Promise<T> | undefined;
  for (let sendings = 1, now = startedAt; ; sendings += 1, now = deadlines.clock.now()) {
    // Read each time: it may grow with what the backend has to send (docs/spec.md §2.5).
    const budgetMs = backend.releaseBudgetMs ?? BUDGET_MS;
    const giveUpAt = Math.min(latest, startedAt + budgetMs);
    const context = new CallContext(
      deadlines,
      Math.min(giveUpAt, now + RESEND_PART * budgetMs),
      undefined,
      NEVER,
    );
    let sent = undefined as Promise<T> | undefined;
    const answer = await context.answerOf(() => {
      sent = send(context);
      if (unanswered !== undefined) sent = Promise.race([unanswered, sent]);
      return sent;
    });
    context.done();
    let failure: Failure;
    if (answer === INTERRUPTED) {
      unanswered = sent?.catch(() => new Promise<never>(() => {}));
      failure = new Failure(new NoAnswerError('the store did not answer in time'));
    } else if (answer instanceof Failure) failure = answer;
    else return conclude(answer, sendings);
    const pauseMs = BACKOFF_MS * sendings;
    const mayRepeat = answer === INTERRUPTED || isRetryable(failure.error);
    if (!mayRepeat || deadlines.clock.now() + pauseMs >= giveUpAt) return conclude(failure, sendings);
    await delay(pauseMs);
    // After a stall of the event loop there may be no time left.
    if (deadlines.clock.now() >= giveUpAt) return conclude(failure, sendings);
  }
}
