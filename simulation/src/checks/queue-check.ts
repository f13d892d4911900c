import type { HoldRecord, WaiterRecord } from '@locks/core/rules';
import type { World } from '../kernel/world.ts';

/** Holds one resource of a store to docs/spec.md §7.1, §15.2 and §15.8 after every step, without a look at how it decides. */
export class QueueCheck {
  readonly #world: World;
  readonly #resource: string;
  /** The number with which each waiter came. */
  #arrivals = new Map<string, number>();
  #holding = new Set<string>();
  #arrived = 0;
  #highestToken = 0;

  constructor(world: World, resource: string) {
    this.#world = world;
    this.#resource = resource;
  }

  stepTaken(holds: readonly HoldRecord[], waiters: readonly WaiterRecord[]): void {
    const fresh = holds.filter(({ id }) => !this.#holding.has(id));
    for (const hold of fresh) this.#granted(hold, waiters);
    if (fresh.length > 0)
      this.#highestToken = Math.max(...fresh.map(({ token }) => token), this.#highestToken);
    const before = this.#arrivals;
    this.#arrivals = new Map();
    // A hold that was not claimed goes back to the place of its waiter when another steals the resource.
    for (const { id, unclaimed } of holds) {
      const arrival = before.get(id);
      if (unclaimed !== undefined && arrival !== undefined) this.#arrivals.set(id, arrival);
    }
    for (const { id } of waiters) this.#arrivals.set(id, before.get(id) ?? (this.#arrived += 1));
    if (fresh.length > 0 || holds.length !== this.#holding.size)
      this.#holding = new Set(holds.map(({ id }) => id));
  }

  #granted({ id, label, token, stolen }: HoldRecord, waiters: readonly WaiterRecord[]): void {
    if (token <= this.#highestToken) {
      const highest = this.#highestToken;
      this.#world.violated('§15.8', `${label} got the token ${token} of ${this.#resource} after ${highest}`);
    }
    if (stolen) return;
    const arrival = this.#arrivals.get(id) ?? Infinity;
    const passed = waiters.find((waiter) => (this.#arrivals.get(waiter.id) ?? Infinity) < arrival);
    if (passed !== undefined)
      this.#world.violated('§7.1', `${label} got ${this.#resource} before ${passed.label}, who came earlier`);
  }
}
