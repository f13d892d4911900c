/** Of so many releases in a row the next of the own line hears no word of one: other processes wait too. */
const WORDS_IN_A_ROW = 16;

/** A place in a line. */
export interface Place {
  /** Nobody stood before it when it was taken. */
  readonly isFirst: boolean;
  /** Settles when all who came before have left. */
  readonly turn: Promise<void>;
  /** What to do when another of this manager has released; `undefined` for nothing. Asked only of the first. */
  hinted: (() => void) | undefined;
  leave(): void;
}

/**
 * Those of one manager who wait where the store keeps no queue, by resource. Only the first of a line asks the store, so
 * that its load does not grow with their number (docs/spec.md §7.6).
 */
export class Lines {
  readonly #lines = new Map<string, Line>();

  has(resource: string): boolean {
    return this.#lines.has(resource);
  }

  /** This manager released the resource: whoever of it is first need not wait for its next look. */
  released(resource: string): void {
    const line = this.#lines.get(resource);
    if (line === undefined) return;
    line.words = (line.words + 1) % WORDS_IN_A_ROW;
    const [first] = line.places;
    if (line.words > 0) first?.hinted?.();
  }

  join(resource: string): Place {
    const line = this.#lines.get(resource) ?? { places: new Set(), words: 0 };
    this.#lines.set(resource, line);
    let come: () => void = () => {};
    const turn = new Promise<void>((resolve) => (come = resolve));
    const isFirst = line.places.size === 0;
    const place: Standing = {
      isFirst,
      turn,
      hinted: undefined,
      come,
      leave: () => {
        line.places.delete(place);
        const [first] = line.places;
        // To one that has it already it tells nothing.
        if (first !== undefined) first.come();
        else if (this.#lines.get(resource) === line) this.#lines.delete(resource);
      },
    };
    line.places.add(place);
    if (isFirst) come();
    return place;
  }
}

interface Standing extends Place {
  readonly come: () => void;
}

interface Line {
  readonly places: Set<Standing>;
  /** Releases of which the first was told, or was not. */
  words: number;
}
