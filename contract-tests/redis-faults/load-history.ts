import { SafetyViolation } from '@locks/core/conformance';
import { expect } from 'vitest';
import type { LoadResult, LoadSection } from '../src/fault-lab/worker/commands.ts';

interface Overlap {
  readonly earlier: LoadSection;
  readonly later: LoadSection;
}

/** Readers hold beside readers, permits beside permits. */
function exclude({ kind: one }: LoadSection, { kind: other }: LoadSection): boolean {
  return one === 'exclusive' || other === 'exclusive' || typeof one !== typeof other;
}

/** Every two critical sections of one resource that exclude each other and overlap. */
function overlapsIn(history: readonly LoadSection[]): Overlap[] {
  const overlaps: Overlap[] = [];
  for (const sections of byResource(history).values()) {
    for (const [index, earlier] of sections.entries()) {
      for (let next = index + 1; next < sections.length; next += 1) {
        const later = sections[next] as LoadSection;
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
  history: readonly LoadSection[],
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
export function assertTokensRise(history: readonly LoadSection[]): void {
  for (const [resource, sections] of byResource(history)) {
    const tokens = new Set(sections.map(({ token }) => token));
    if (tokens.size < sections.length) throw new SafetyViolation(`A token of ${resource} was given twice.`);
    assertRisingIn(resource, sections);
  }
}

function assertRisingIn(resource: string, sections: readonly LoadSection[]): void {
  const ended = sections.toSorted((a, b) => a.endedAt - b.endedAt);
  // The highest token of the sections that had ended, and of the exclusive ones among them.
  let highest: LoadSection | undefined;
  let highestAlone: LoadSection | undefined;
  let at = 0;
  for (const section of sections) {
    for (; at < ended.length && (ended[at] as LoadSection).endedAt <= section.enteredAt; at += 1) {
      const left = ended[at] as LoadSection;
      highest = higher(highest, left);
      if (left.kind === 'exclusive') highestAlone = higher(highestAlone, left);
    }
    const before = section.kind === 'exclusive' ? highest : highestAlone;
    if (before === undefined || BigInt(before.token) < BigInt(section.token)) continue;
    const pair = JSON.stringify([before, section], undefined, 2);
    throw new SafetyViolation(`The token of ${resource} did not rise:\n${pair}`);
  }
}

function higher(one: LoadSection | undefined, other: LoadSection): LoadSection {
  return one === undefined || BigInt(other.token) > BigInt(one.token) ? other : one;
}

/** Never more than `limit` of the weights of permits are inside at once. */
export function assertWithinLimit(history: readonly LoadSection[], limit: number): void {
  for (const [resource, sections] of byResource(history)) {
    let inside: LoadSection[] = [];
    for (const last of sections) {
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
export function recoveryMs(history: readonly LoadSection[], faultAt: number, who = ''): number {
  const waits = [...byResource(history)].map(([resource, sections]) => {
    // A grant from before the fault may arrive a moment after it.
    const first = sections.find(
      (section) => section.who.startsWith(who) && section.enteredAt > faultAt + 100,
    );
    if (first === undefined) expect.fail(`${resource} was never entered again by ${who || 'anyone'}.`);
    return first.enteredAt - faultAt;
  });
  return Math.max(...waits);
}

export function together(results: readonly LoadResult[]): LoadResult {
  return {
    sections: results.flatMap(({ sections }) => sections),
    failures: results.flatMap(({ failures }) => failures),
    unhandled: results.flatMap(({ unhandled }) => unhandled),
  };
}

/** The sections of each resource, in the order in which they were entered. */
function byResource(history: readonly LoadSection[]): Map<string, LoadSection[]> {
  const groups = new Map<string, LoadSection[]>();
  for (const section of history.toSorted((a, b) => a.enteredAt - b.enteredAt)) {
    const group = groups.get(section.resource);
    if (group) group.push(section);
    else groups.set(section.resource, [section]);
  }
  return groups;
}
