import type { LockMode } from '@locks/core/backend';

/** What still fits beside what holds a resource (docs/spec.md §15.1, §15.5). */
export class Room {
  #kind: LockMode['kind'] | undefined;
  #used: number;

  /** @param kind - of the live holds, if there are any; @param used - the weights of them all */
  constructor(kind?: LockMode['kind'], used = 0) {
    this.#kind = kind;
    this.#used = used;
  }

  get isFull(): boolean {
    return this.#kind === 'exclusive';
  }

  /** Fills the room with what fits, and says whether it did. */
  take(mode: LockMode): boolean {
    if (!this.#fits(mode)) return false;
    this.#kind = mode.kind;
    if (mode.kind === 'permit') this.#used += mode.weight;
    return true;
  }

  #fits(mode: LockMode): boolean {
    switch (mode.kind) {
      case 'exclusive':
        return this.#kind === undefined;
      case 'shared':
        return this.#kind === undefined || this.#kind === 'shared';
      case 'permit':
        return (
          (this.#kind === undefined || this.#kind === 'permit') && this.#used + mode.weight <= mode.limit
        );
      default:
        return mode satisfies never;
    }
  }
}

/** Whether two modes cannot live on one resource, even one after the other in its line (§15.7). */
export function contradict(one: LockMode, other: LockMode): boolean {
  if (one.kind === 'permit' && other.kind === 'permit') return one.limit !== other.limit;
  return one.kind === 'permit' || other.kind === 'permit';
}
