import type { LockMode } from '@locks/core/backend';
import type { Place } from './acquisition.ts';
import type { Entry } from './entry.ts';

/** Whether an acquisition may be granted in a state of its resource. */
export type Turn =
  | { readonly status: 'free' }
  /** `by`: what must go first, in the order of service; the last one is the nearest. */
  | { readonly status: 'blocked'; readonly by: readonly Entry[] };

const FREE: Turn = { status: 'free' };

/** Revisions stay exact with so many places between two of them. */
const RANKS = 128;

/** The place in the queue as one number: the revision, and the rank among those that were queued at it. */
export function placeOf({ createRevision, rank = 0 }: Pick<Place, 'createRevision' | 'rank'>): number {
  return createRevision + rank / RANKS;
}

/** The holders, and then the waiters in their order. */
export function inOrder(entries: readonly Entry[]): Entry[] {
  return entries.toSorted((a, b) => Number(b.held) - Number(a.held) || placeOf(a) - placeOf(b));
}

/**
 * The one rule of the queue (docs/spec.md §15.2), for somebody who waits since `place`, or would come last.
 * `entries` are in order. A grant never changes the turn of those before it, so that this may be judged on a state that is past: whatever was
 * added since stands behind (except what was stolen, and the conditions of the writes see to that).
 */
export function turnOf(entries: readonly Entry[], mode: LockMode, place = Number.POSITIVE_INFINITY): Turn {
  const before = entries.filter((entry) => entry.held || placeOf(entry) < place);
  const by = blockers(before, mode, place);
  return by.length === 0 ? FREE : { status: 'blocked', by };
}

function blockers(before: readonly Entry[], mode: LockMode, place: number): readonly Entry[] {
  switch (mode.kind) {
    case 'exclusive':
      return before;
    case 'shared':
      // Whoever does not wait yet overtakes nobody, not even other readers.
      return before.filter(
        (entry) => entry.mode.kind !== 'shared' || (!entry.held && place === Number.POSITIVE_INFINITY),
      );
    case 'permit': {
      if (place === Number.POSITIVE_INFINITY && before.some(({ held }) => !held)) return before;
      // Those before who wait are counted as if they held: each is granted by itself, in any order, and all fit.
      const taken = before.reduce((sum, entry) => sum + weightOf(entry.mode), 0);
      return taken + mode.weight <= mode.limit ? [] : before;
    }
    default:
      return mode satisfies never;
  }
}

function weightOf(mode: LockMode): number {
  return mode.kind === 'permit' ? mode.weight : Number.POSITIVE_INFINITY;
}

/** A mode among the entries that `mode` contradicts (docs/spec.md §15.7). */
export function conflictWith(entries: readonly Entry[], mode: LockMode): LockMode | undefined {
  return entries.find((entry) => contradicts(entry.mode, mode))?.mode;
}

function contradicts(a: LockMode, b: LockMode): boolean {
  if (a.kind === 'permit' && b.kind === 'permit') return a.limit !== b.limit;
  return a.kind === 'permit' || b.kind === 'permit';
}
