import { messageOf } from '../errors.ts';
import { BudgetTimer, TimeBudget } from './time-budget.ts';

/** The longest delay of `setTimeout` in milliseconds, some 24.8 days: a longer one is taken for 1 ms, and fires at once. */
export const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** The error for a store that gave no answer in time. The store may have executed the call all the same. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';

  /**
   * @param reason - a time limit in milliseconds, or what is known of the failure
   * @param cause - why there was none, where the client knows it
   */
  constructor(reason: number | string, cause?: unknown) {
    const what = typeof reason === 'number' ? `no answer within ${Math.round(reason)} ms` : reason;
    super(cause === undefined ? what : `${what}: ${messageOf(cause)}`, { cause });
  }
}

/**
 * Resolves as `work` does, or as `late()` when `work` takes longer than `limit`; `Infinity` sets no limit. Late work goes on, and its
 * failure is no unhandled rejection. The timer keeps the process alive: somebody waits for the outcome.
 *
 * The time for which the event loop stood still does not count, and what has arrived is read before `late` is called.
 *
 * @param limit - in milliseconds, or what is left of a budget on `performance.now()` that several works share
 *
 * @example
 * ```ts
 * import { withTimeLimit } from '@locks/core/backend';
 *
 * export const isAlive = (ping: Promise<unknown>): Promise<boolean> =>
 *   withTimeLimit(ping.then(() => true), 1_000, () => false);
 * ```
 */
export async function withTimeLimit<T, L>(
  work: Promise<T>,
  limit: number | TimeBudget,
  late: () => L | Promise<L>,
): Promise<T | L> {
  const budget = typeof limit === 'number' ? new TimeBudget(performance.now(), limit) : limit;
  // A limit of more than 24 days is none.
  if (budget.endsAt - performance.now() > MAX_TIMEOUT_MS) return work;
  let timer: BudgetTimer | undefined;
  const timeout = new Promise<typeof LATE>((resolve) => {
    timer = new BudgetTimer(budget, () => resolve(LATE));
  });
  const first = await Promise.race([work, timeout]).finally(() => timer?.clear());
  return first === LATE ? late() : first;
}

const LATE = Symbol('late');

/** Rejects with a {@link NoAnswerError} when `work` takes longer than `limitMs` milliseconds, as {@link withTimeLimit} counts them. */
export function answerWithin<T>(work: Promise<T>, limitMs: number): Promise<T> {
  return withTimeLimit(work, limitMs, () => Promise.reject(new NoAnswerError(limitMs)));
}
