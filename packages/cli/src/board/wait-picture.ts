import type { Holder, ResourceState } from '@locks/core';
import { endlessWaits, toldBy, WAIT_NAMES } from '@locks/core/backend';

/** Maximum number of locks in the picture: more lines than that explain nothing. */
const MOST_DRAWN = 100;

/** A lock in the picture of who waits for whom. */
export interface DrawnLock {
  readonly name: string;
  readonly holders: readonly Pick<Holder, 'acquisitionId' | 'label'>[];
  /** The locks that its holders wait for. */
  readonly waitsFor: readonly {
    readonly name: string;
    /** Whether that lock's holders wait for this lock, directly or over others, and none of these waits ends unless one gives up. */
    readonly isInCircle: boolean;
  }[];
}

/**
 * The locks whose holders wait for others, and those that these wait for: each stands before those that its holders wait for, but where they
 * are a circle.
 *
 * @param told - the locks by which holds tell what they wait for
 */
export function waitPicture(
  states: readonly Pick<ResourceState, 'name' | 'holders'>[],
  told: readonly Pick<ResourceState, 'name' | 'holders'>[],
): readonly DrawnLock[] {
  const waitsOfHold = new Map(
    told.map(({ name, holders }) => [
      name.slice(WAIT_NAMES.length),
      holders.flatMap(({ label }) => toldBy(label) ?? []),
    ]),
  );
  const waitsOf = (acquisitionId: string) => waitsOfHold.get(acquisitionId) ?? [];
  const endless = endlessWaits(states, waitsOf);
  const waits = new Map<string, ReadonlySet<string>>();
  const stuck = new Map<string, ReadonlySet<string>>();
  for (const { name, holders } of states) {
    const inside = holders.flatMap(({ acquisitionId }) => waitsOf(acquisitionId));
    if (inside.length === 0 || waits.size === MOST_DRAWN) continue;
    waits.set(name, new Set(inside.map((wait) => wait.name)));
    stuck.set(name, new Set(inside.filter(({ id }) => endless.has(id)).map((wait) => wait.name)));
  }
  const awaited = new Set([...waits.values()].flatMap((names) => [...names]));
  const ordered = new Set<string>();
  const place = (name: string): void => {
    if (ordered.has(name)) return;
    ordered.add(name);
    for (const next of waits.get(name) ?? []) place(next);
  };
  // A lock whose holders nobody waits for is the beginning of a chain; those left after them are circles.
  for (const name of waits.keys()) if (!awaited.has(name)) place(name);
  for (const name of waits.keys()) place(name);
  const holdersOf = new Map(states.map(({ name, holders }) => [name, holders]));
  return [...ordered].map((name) => ({
    name,
    holders: (holdersOf.get(name) ?? []).map(({ acquisitionId, label }) => ({
      acquisitionId,
      ...(label !== undefined && { label }),
    })),
    waitsFor: [...(waits.get(name) ?? [])].map((next) => ({
      name: next,
      isInCircle: stuck.get(name)?.has(next) === true && reachedFrom(next, stuck).has(name),
    })),
  }));
}

/** A lock, and those that its holders wait for, directly or over others. */
function reachedFrom(start: string, waits: ReadonlyMap<string, ReadonlySet<string>>): ReadonlySet<string> {
  const reached = new Set([start]);
  // The set grows while it is read.
  for (const name of reached) for (const next of waits.get(name) ?? []) reached.add(next);
  return reached;
}
