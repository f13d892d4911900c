import type { HoldTimes } from './record-value.ts';

/** How many names are remembered; the ones that were seen last stay. */
const MAX_NAMES = 10_000;

interface Sighting {
  readonly mark: number;
  readonly since: number;
}

/**
 * Observed expiry: since when this process has seen each hold without a renewal, by its own monotonic clock. A hold was granted or
 * renewed before it was first seen so, and its owner counts its ttl from before that write: once it was seen unchanged for its
 * ttl, the owner believes in it no more. No clock is compared with another.
 */
export class Sightings {
  readonly #byName = new Map<string, ReadonlyMap<string, Sighting>>();

  /**
   * Records that a resource was seen at `now`, and returns since when each of its holds was seen without a renewal.
   *
   * @param times - the times of all its holds, by id
   */
  see(
    name: string,
    times: ReadonlyMap<string, Pick<HoldTimes, 'mark'>>,
    now: number,
  ): (id: string) => number {
    const before = this.#byName.get(name);
    const seen = new Map<string, Sighting>();
    for (const [id, { mark }] of times) {
      const earlier = before?.get(id);
      seen.set(id, earlier?.mark === mark ? earlier : { mark, since: now });
    }
    this.#byName.delete(name);
    if (seen.size > 0) this.#byName.set(name, seen);
    if (this.#byName.size > MAX_NAMES) {
      const [oldest] = this.#byName.keys();
      this.#byName.delete(oldest as string);
    }
    return (id) => seen.get(id)?.since ?? now;
  }
}
