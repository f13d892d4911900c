import type { RunResult } from './simulation.ts';

/** What happened, one event a line: the true time in milliseconds, where, and what. */
export function timelineOf({ timeline }: Pick<RunResult, 'timeline'>): string[] {
  const widest = Math.max(0, ...timeline.map(({ who }) => who.length));
  return timeline.map(({ at, who, what }) => `${at.toFixed(3).padStart(11)}  ${who.padEnd(widest)}  ${what}`);
}
