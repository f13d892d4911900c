import { microsSince, type Moment } from './moment.ts';
import type { HoldTimes } from './record-value.ts';

/** How many names, and how many writes without an answer, are remembered: the latest. */
const MAX_KEPT = 10_000;

interface Sighting {
  readonly mark: number;
  readonly since: number;
  /** When this process sent the write itself. */
  readonly sentAt: Moment | undefined;
}

/**
 * Observed expiry: since when this process has seen each hold without a renewal, by its own monotonic clock. A hold was granted or
 * renewed before it was first seen so, and its owner counts its ttl from before that write: once it was seen unchanged for its
 * ttl, the owner believes in it no more. No clock is compared with another.
 */
export class Sightings {
  readonly #byName = new Map<string, ReadonlyMap<string, Sighting>>();
  /** When the writes of this process were sent whose answers have not come, by their ids. */
  readonly #sent = new Map<number, Moment>();

  /**
   * Records that a write of this process is sent now, whose answer may be lost. The holds that it grants or renews count from here:
   * others may see them long before this process reads them (docs/spec.md §1.2).
   */
  sends(mark: number, sentAt: Moment): void {
    this.#sent.set(mark, sentAt);
    dropOldest(this.#sent);
  }

  answered(mark: number): void {
    this.#sent.delete(mark);
  }

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
      seen.set(id, earlier?.mark === mark ? earlier : { mark, since: now, sentAt: this.#sent.get(mark) });
    }
    this.#byName.delete(name);
    if (seen.size > 0) this.#byName.set(name, seen);
    dropOldest(this.#byName);
    return (id) => {
      const { since = now, sentAt } = seen.get(id) ?? {};
      return sentAt === undefined ? since : now - microsSince(sentAt);
    };
  }
}

function dropOldest<K>(map: Map<K, unknown>): void {
  if (map.size <= MAX_KEPT) return;
  const [oldest] = map.keys();
  map.delete(oldest as K);
}
