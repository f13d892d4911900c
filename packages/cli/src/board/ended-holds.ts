import type { Holder, ResourceState } from '@locks/core';

/** The end of a hold, as far as an observer of the store can tell. */
export type Ending =
  /** The ttl ran out without a renewal: the holder died, or could not reach the store. */
  | 'ran-out'
  /** The board ended the hold. */
  | 'released-here'
  /** The hold was released, or ended by force elsewhere. */
  | 'ended';

export interface EndedHold {
  readonly name: string;
  readonly holder: Holder;
  readonly ending: Ending;
  /** The time at which the hold was first seen to be over, in milliseconds since 1970. */
  readonly at: number;
}

/** The last observation of a hold. */
interface Seen {
  readonly name: string;
  readonly holder: Holder;
  readonly at: number;
  /** The longest remaining time of the hold that was ever observed, in milliseconds. */
  readonly longestMs: number;
}

const MOST_KEPT = 50;

/** Compares the holds of each look with those of the look before, and keeps the ones that have ended. */
export class EndedHolds {
  readonly #seen = new Map<string, Seen>();
  readonly #releasedHere = new Set<string>();
  #ended: readonly EndedHold[] = [];

  /** The holds that ended last, the newest first. */
  get list(): readonly EndedHold[] {
    return this.#ended;
  }

  /** Marks a hold that the board itself is about to end, or removes the mark. */
  releasesHere(acquisitionId: string, does: boolean): void {
    if (does) this.#releasedHere.add(acquisitionId);
    else this.#releasedHere.delete(acquisitionId);
  }

  /** @param askedAt - milliseconds since 1970 at which the states were asked for; the answer came at `answeredAt` */
  look(states: readonly ResourceState[], askedAt: number, answeredAt = askedAt): void {
    const holds = new Map<string, Pick<Seen, 'name' | 'holder'>>(
      states.flatMap(({ name, holders }) =>
        holders.map((holder) => [`${holder.acquisitionId} ${name}`, { name, holder }] as const),
      ),
    );
    const gone = [...this.#seen].filter(([key]) => !holds.has(key));
    const ended = gone.map(([key, seen]): EndedHold => {
      this.#seen.delete(key);
      const ending = this.#releasedHere.delete(seen.holder.acquisitionId)
        ? 'released-here'
        : endingOf(seen, answeredAt);
      return { name: seen.name, holder: seen.holder, ending, at: answeredAt };
    });
    this.#ended = [...ended, ...this.#ended].slice(0, MOST_KEPT);
    for (const [key, { name, holder }] of holds) {
      const longestMs = Math.max(holder.expiresInMs ?? 0, this.#seen.get(key)?.longestMs ?? 0);
      this.#seen.set(key, { name, holder, at: askedAt, longestMs });
    }
  }
}

/**
 * The way in which a hold ended. A renewed hold has at least two thirds of its ttl left: one that was last seen with less than
 * half, and has no time left, ran out.
 */
function endingOf({ holder: { expiresInMs }, at, longestMs }: Seen, now: number): Ending {
  if (expiresInMs === undefined) return 'ended';
  return expiresInMs <= now - at && expiresInMs < longestMs / 2 ? 'ran-out' : 'ended';
}
