import { SafetyViolation } from '@locks/core/conformance';
import { expect } from 'vitest';
import type { LoadResult, Stay } from './worker-orders.ts';

interface Overlap {
  readonly earlier: Stay;
  readonly later: Stay;
}

/** Every two stays of one resource that were inside at one moment. */
function overlapsIn(history: readonly Stay[]): Overlap[] {
  const overlaps: Overlap[] = [];
  for (const stays of byResource(history).values()) {
    for (const [index, earlier] of stays.entries()) {
      for (const later of stays.slice(index + 1)) {
        if (later.enteredAt < earlier.endedAt) overlaps.push({ earlier, later });
      }
    }
  }
  return overlaps;
}

/**
 * Refuses every overlap that nothing excuses. A lost grant excuses its own: then the later token must be the higher one.
 * Gives the overlaps that were excused.
 */
export function assertNoOverlap(
  history: readonly Stay[],
  excuses: (overlap: Overlap) => boolean = () => false,
): Overlap[] {
  const overlaps = overlapsIn(history);
  for (const overlap of overlaps) {
    const { earlier, later } = overlap;
    if (!excuses(overlap) || BigInt(later.token) <= BigInt(earlier.token))
      throw new SafetyViolation(`Two were inside at once:\n${JSON.stringify(overlap, undefined, 2)}`);
  }
  return overlaps;
}

/** Tokens rise from a holder to whoever entered after it had left, and no token is given twice. */
export function assertTokensRise(history: readonly Stay[]): void {
  for (const [resource, stays] of byResource(history)) {
    const tokens = new Set(stays.map(({ token }) => token));
    if (tokens.size < stays.length) throw new SafetyViolation(`A token of ${resource} was given twice.`);
    let highest: Stay | undefined;
    for (const stay of [...stays].sort((a, b) => a.enteredAt - b.enteredAt)) {
      if (
        highest !== undefined &&
        highest.endedAt <= stay.enteredAt &&
        BigInt(stay.token) <= BigInt(highest.token)
      ) {
        throw new SafetyViolation(
          `The token of ${resource} did not rise:\n${JSON.stringify([highest, stay], undefined, 2)}`,
        );
      }
      if (highest === undefined || BigInt(stay.token) > BigInt(highest.token)) highest = stay;
    }
  }
}

/** How long after `faultAt` the last of the resources was entered again by `who`. */
export function recoveryMs(history: readonly Stay[], faultAt: number, who = ''): number {
  const waits = [...byResource(history)].map(([resource, stays]) => {
    // What was granted before the fault may be told a moment after it.
    const first = stays.find((stay) => stay.who.startsWith(who) && stay.enteredAt > faultAt + 100);
    if (first === undefined) expect.fail(`${resource} was never entered again by ${who || 'anyone'}.`);
    return first.enteredAt - faultAt;
  });
  return Math.max(...waits);
}

export function together(results: readonly LoadResult[]): LoadResult {
  return {
    stays: results.flatMap(({ stays }) => stays),
    failures: results.flatMap(({ failures }) => failures),
    unhandled: results.flatMap(({ unhandled }) => unhandled),
  };
}

function byResource(history: readonly Stay[]): Map<string, Stay[]> {
  const groups = new Map<string, Stay[]>();
  for (const stay of [...history].sort((a, b) => a.enteredAt - b.enteredAt)) {
    groups.set(stay.resource, [...(groups.get(stay.resource) ?? []), stay]);
  }
  return groups;
}
