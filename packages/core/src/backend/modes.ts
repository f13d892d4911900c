import type { LockMode } from './types.ts';

/** Whether two modes cannot live on one resource, even one after the other in its queue (docs/spec.md §15.7). */
export function areInConflict(one: LockMode, other: LockMode): boolean {
  if (one.kind === 'permit' && other.kind === 'permit') return one.limit !== other.limit;
  return one.kind === 'permit' || other.kind === 'permit';
}

/**
 * Whether nobody holds beside a hold in this mode: when it ends, the head of the queue is next (docs/spec.md §15.1). Ask with the mode
 * that the hold has now, which a downgrade has changed, not with that of its request.
 */
export function holdsAlone(mode: LockMode): boolean {
  switch (mode.kind) {
    case 'exclusive':
      return true;
    // A permit that takes the whole limit is not alone either: the limit may rise while it is held.
    case 'shared':
    case 'permit':
      return false;
    default:
      return mode satisfies never;
  }
}

/** The hold of those on one lock that keeps a request waiting while all of them stay. */
export function holdInTheWay<T>(
  holds: Iterable<T>,
  modeOf: (hold: T) => LockMode,
  mode: LockMode,
): T | undefined {
  let heldWeight = 0;
  for (const hold of holds) {
    const held = modeOf(hold);
    if (held.kind === 'permit' && mode.kind === 'permit') {
      heldWeight += held.weight;
      if (heldWeight + mode.weight > mode.limit) return hold;
    } else if (held.kind !== 'shared' || mode.kind !== 'shared') return hold;
  }
  return undefined;
}

/**
 * The free part of a resource: what still fits beside its holders (docs/spec.md §15.1, §15.5).
 *
 * @example
 * ```ts
 * import { Capacity, type LockMode } from '@locks/core/backend';
 *
 * // Grants to the head of the queue while it fits; who does not fit holds back those behind.
 * export function granted(holders: LockMode[], queue: LockMode[]): LockMode[] {
 *   const capacity = Capacity.beside(holders);
 *   const firstLeft = queue.findIndex((mode) => !capacity.take(mode));
 *   return firstLeft < 0 ? queue : queue.slice(0, firstLeft);
 * }
 * ```
 */
export class Capacity {
  #kind: LockMode['kind'] | 'several' | undefined;
  #weight: number;

  /**
   * @param kind - of the holders; `undefined` when nobody holds
   * @param weight - of all permits that are held
   */
  constructor(kind?: LockMode['kind'], weight = 0) {
    this.#kind = kind;
    this.#weight = weight;
  }

  /** The capacity beside these holders. */
  static beside(holders: Iterable<LockMode>): Capacity {
    const capacity = new Capacity();
    for (const mode of holders) capacity.#add(mode);
    return capacity;
  }

  /** Whether nothing fits, whatever its mode. */
  get isUsedUp(): boolean {
    return this.#kind === 'exclusive' || this.#kind === 'several';
  }

  /** Whether one more holder of this mode fits. */
  fits(mode: LockMode): boolean {
    switch (mode.kind) {
      case 'exclusive':
        return this.#kind === undefined;
      case 'shared':
        return this.#kind === undefined || this.#kind === 'shared';
      case 'permit':
        return this.#kind === undefined || this.#kind === 'permit'
          ? this.#weight + mode.weight <= mode.limit
          : false;
      default:
        return mode satisfies never;
    }
  }

  /** Lets one more hold if it fits, and says whether it did. */
  take(mode: LockMode): boolean {
    const fits = this.fits(mode);
    if (fits) this.#add(mode);
    return fits;
  }

  /** The capacity after a holder of this mode has left; `undefined` where the other holders must be counted again. */
  without(mode: LockMode): Capacity | undefined {
    if (this.#kind === 'several') return undefined;
    if (mode.kind === 'permit') this.#weight -= mode.weight;
    return this;
  }

  #add(mode: LockMode): void {
    // An acquisition that steals may hold in another mode than those that it left.
    this.#kind = this.#kind === undefined || this.#kind === mode.kind ? mode.kind : 'several';
    if (mode.kind === 'permit') this.#weight += mode.weight;
  }
}
