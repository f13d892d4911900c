import type { RunResult } from './simulation.ts';

/** What happened, one event a line: the true time in milliseconds, where, and what. */
export function timelineOf({ timeline }: Pick<RunResult, 'timeline'>): string[] {
  // The end of an event in whose middle a process stood still was noted before what others did meanwhile.
  const inOrder = timeline.toSorted((a, b) => a.at - b.at);
  const widest = Math.max(0, ...timeline.map(({ who }) => who.length));
  return inOrder.map(({ at, who, what }) => `${at.toFixed(3).padStart(11)}  ${who.padEnd(widest)}  ${what}`);
}
