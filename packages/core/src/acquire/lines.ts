/** A place in a line. */
export interface Place {
  /** Nobody stood before it when it was taken. */
  readonly isFirst: boolean;
  /** Settles when all who came before have left. */
  readonly turn: Promise<void>;
  leave(): void;
}

/**
 * Those of one manager who wait where the store keeps no queue, by resource. Only the first of a line asks the store, so
 * that its load does not grow with their number (docs/spec.md §7.6).
 */
export class Lines {
  readonly #lines = new Map<string, Set<() => void>>();

  join(resource: string): Place {
    const line = this.#lines.get(resource) ?? new Set();
    this.#lines.set(resource, line);
    let come: () => void = () => {};
    const turn = new Promise<void>((resolve) => (come = resolve));
    line.add(come);
    const isFirst = line.size === 1;
    if (isFirst) come();
    const leave = (): void => {
      line.delete(come);
      const [first] = line;
      // To one that has it already it tells nothing.
      if (first !== undefined) first();
      else if (this.#lines.get(resource) === line) this.#lines.delete(resource);
    };
    return { isFirst, turn, leave };
  }
}
