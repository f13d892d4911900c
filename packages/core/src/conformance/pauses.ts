import type { Stage } from './stage.ts';

const LOOK_MS = 3;
/** Less is nothing but a busy event loop. */
const LEAST_MS = 20;

/**
 * The longest time for which this process stood still since a moment of `performance.now()`. What went wrong in a round
 * with a long pause shows nothing: what was to be renewed ran out, who waited was taken for dead.
 */
export type LongestPause = (since: number) => number;

/** Watches until the end of the case. */
export function watchPauses(stage: Stage): LongestPause {
  const pauses: { readonly endedAt: number; readonly ms: number }[] = [];
  let last = performance.now();
  const look = (): void => {
    const endedAt = performance.now();
    const ms = endedAt - last;
    last = endedAt;
    if (ms > LEAST_MS) pauses.push({ endedAt, ms });
  };
  const ticker = setInterval(look, LOOK_MS);
  stage.onEnd(async () => clearInterval(ticker));
  return (since) => {
    look();
    return Math.max(0, ...pauses.filter(({ endedAt }) => endedAt >= since).map(({ ms }) => ms));
  };
}
