import { SafetyViolation } from '@locks/core/conformance';
import { expect } from 'vitest';
import type { LoadResult, Stay } from './worker-orders.ts';

interface Overlap {
  readonly earlier: Stay;
  readonly later: Stay;
}

/** Readers stand beside readers, permits beside permits. */
function exclude({ kind: one }: Stay, { kind: other }: Stay): boolean {
  return one === 'exclusive' || other === 'exclusive' || typeof one !== typeof other;
}

/** Every two stays of one resource that exclude each other and were inside at one moment. */
function overlapsIn(history: readonly Stay[]): Overlap[] {
  const overlaps: Overlap[] = [];
  for (const stays of byResource(history).values()) {
    for (const [index, earlier] of stays.entries()) {
      for (let next = index + 1; next < stays.length; next += 1) {
        const later = stays[next] as Stay;
        if (later.enteredAt >= earlier.endedAt) break;
        if (exclude(earlier, later)) overlaps.push({ earlier, later });
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

/** Tokens rise from a holder to whoever it excluded and who entered after it had left, and no token is given twice. */
export function assertTokensRise(history: readonly Stay[]): void {
  for (const [resource, stays] of byResource(history)) {
    const tokens = new Set(stays.map(({ token }) => token));
    if (tokens.size < stays.length) throw new SafetyViolation(`A token of ${resource} was given twice.`);
    assertRisingIn(resource, stays);
  }
}

function assertRisingIn(resource: string, stays: readonly Stay[]): void {
  const ended = stays.toSorted((a, b) => a.endedAt - b.endedAt);
  // Of those that had ended, the highest of all, and of those that are exclusive.
  let highest: Stay | undefined;
  let highestAlone: Stay | undefined;
  let at = 0;
  for (const stay of stays) {
    for (; at < ended.length && (ended[at] as Stay).endedAt <= stay.enteredAt; at += 1) {
      const left = ended[at] as Stay;
      highest = higher(highest, left);
      if (left.kind === 'exclusive') highestAlone = higher(highestAlone, left);
    }
    const before = stay.kind === 'exclusive' ? highest : highestAlone;
    if (before === undefined || BigInt(before.token) < BigInt(stay.token)) continue;
    const pair = JSON.stringify([before, stay], undefined, 2);
    throw new SafetyViolation(`The token of ${resource} did not rise:\n${pair}`);
  }
}

function higher(one: Stay | undefined, other: Stay): Stay {
  return one === undefined || BigInt(other.token) > BigInt(one.token) ? other : one;
}

/** Never more than `limit` of the weights of permits are inside at once. */
export function assertWithinLimit(history: readonly Stay[], limit: number): void {
  for (const [resource, stays] of byResource(history)) {
    let inside: Stay[] = [];
    for (const last of stays) {
      inside = [...inside.filter(({ endedAt }) => endedAt > last.enteredAt), last];
      const used = inside.reduce((sum, { kind }) => sum + (typeof kind === 'object' ? kind.weight : 0), 0);
      if (used <= limit) continue;
      throw new SafetyViolation(
        `${used} of ${limit} permits of ${resource} were taken:\n${JSON.stringify(inside, undefined, 2)}`,
      );
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

/** Each in the order in which they entered. */
function byResource(history: readonly Stay[]): Map<string, Stay[]> {
  const groups = new Map<string, Stay[]>();
  for (const stay of history.toSorted((a, b) => a.enteredAt - b.enteredAt)) {
    const group = groups.get(stay.resource);
    if (group) group.push(stay);
    else groups.set(stay.resource, [stay]);
  }
  return groups;
}
