import type { CaseContext } from './case-context.ts';

const CHECK_MS = 3;
/** Shorter pauses are those of a busy event loop, and do not count. */
const LEAST_MS = 20;

/**
 * The longest time for which this process stood still since a moment of `performance.now()`. A failure in a round with a
 * long pause proves nothing: leases ran out, and waiters were taken for dead.
 */
export type LongestPause = (since: number) => number;

/** Records the pauses of this process until the end of the case. */
export function watchPauses(context: CaseContext): LongestPause {
  const pauses: { readonly endedAt: number; readonly ms: number }[] = [];
  let last = performance.now();
  const check = (): void => {
    const endedAt = performance.now();
    const ms = endedAt - last;
    last = endedAt;
    if (ms > LEAST_MS) pauses.push({ endedAt, ms });
  };
  const ticker = setInterval(check, CHECK_MS);
  context.onEnd(async () => clearInterval(ticker));
  return (since) => {
    check();
    return Math.max(0, ...pauses.filter(({ endedAt }) => endedAt >= since).map(({ ms }) => ms));
  };
}
