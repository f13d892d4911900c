import type { Holder, ResourceState } from '@locks/core';

/** How a hold ended, as far as somebody who looks from outside can tell. */
export type Ending =
  /** Its ttl ran out without a renewal: its holder died, or could not reach the store. */
  | 'ran-out'
  /** The board ended it. */
  | 'released-here'
  /** It was released, or ended by force elsewhere. */
  | 'ended';

export interface EndedHold {
  readonly resource: string;
  readonly holder: Holder;
  readonly ending: Ending;
  /** Milliseconds since 1970, when it was first seen to be over. */
  readonly at: number;
}

/** The last time at which a hold was seen. */
interface Seen {
  readonly resource: string;
  readonly holder: Holder;
  readonly at: number;
  /** The longest time that was ever left of it, in milliseconds. */
  readonly longestMs: number;
}

const MOST_KEPT = 50;

/** Compares what is held now with what was held at the look before. */
export class EndedHolds {
  readonly #seen = new Map<string, Seen>();
  readonly #releasedHere = new Set<string>();
  #ended: readonly EndedHold[] = [];

  /** The last ones, the newest first. */
  get list(): readonly EndedHold[] {
    return this.#ended;
  }

  /** Tells whether the board itself ends this hold, before it does. */
  releasesHere(acquisitionId: string, does: boolean): void {
    if (does) this.#releasedHere.add(acquisitionId);
    else this.#releasedHere.delete(acquisitionId);
  }

  /** @param askedAt - milliseconds since 1970 at which the states were asked for; the answer came at `answeredAt` */
  look(states: readonly ResourceState[], askedAt: number, answeredAt = askedAt): void {
    const holds = new Map<string, Pick<Seen, 'resource' | 'holder'>>(
      states.flatMap(({ resource, holders }) =>
        holders.map((holder) => [`${holder.acquisitionId} ${resource}`, { resource, holder }] as const),
      ),
    );
    const gone = [...this.#seen].filter(([key]) => !holds.has(key));
    const ended = gone.map(([key, seen]): EndedHold => {
      this.#seen.delete(key);
      const ending = this.#releasedHere.delete(seen.holder.acquisitionId)
        ? 'released-here'
        : endingOf(seen, answeredAt);
      return { resource: seen.resource, holder: seen.holder, ending, at: answeredAt };
    });
    this.#ended = [...ended, ...this.#ended].slice(0, MOST_KEPT);
    for (const [key, { resource, holder }] of holds) {
      const longestMs = Math.max(holder.expiresInMs ?? 0, this.#seen.get(key)?.longestMs ?? 0);
      this.#seen.set(key, { resource, holder, at: askedAt, longestMs });
    }
  }
}

/** A hold that is renewed has at least two thirds of its ttl left: one that had less than half, and no time, ran out. */
function endingOf({ holder: { expiresInMs }, at, longestMs }: Seen, now: number): Ending {
  if (expiresInMs === undefined) return 'ended';
  return expiresInMs <= now - at && expiresInMs < longestMs / 2 ? 'ran-out' : 'ended';
}
