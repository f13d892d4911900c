import type { CertainHold } from './history-verdict.ts';

/**
 * The hold with the highest token among those of at least a weight, in logarithmic time: a Fenwick tree over the weights, the
 * heaviest first (P. M. Fenwick, "A new data structure for cumulative frequency tables", 1994).
 */
export class HighestByWeight {
  readonly #weights: readonly number[];
  readonly #tree: (CertainHold | undefined)[];

  constructor(weights: Iterable<number>) {
    this.#weights = [...new Set(weights)].sort((a, b) => b - a);
    this.#tree = Array.from({ length: this.#weights.length + 1 });
  }

  add(hold: CertainHold, weight: number): void {
    const rank = this.#countOf((one) => one >= weight);
    for (let at = rank; at < this.#tree.length; at += at & -at) this.#tree[at] = higher(this.#tree[at], hold);
  }

  /** The hold with the highest token among those whose weight is greater than `weight`. */
  above(weight: number): CertainHold | undefined {
    let found: CertainHold | undefined;
    for (let at = this.#countOf((one) => one > weight); at > 0; at -= at & -at)
      found = higher(found, this.#tree[at]);
    return found;
  }

  /** The number of weights that are heavy enough, by binary search in the sorted weights. */
  #countOf(isHeavyEnough: (weight: number) => boolean): number {
    let [low, high] = [0, this.#weights.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isHeavyEnough(this.#weights[middle] as number)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** The hold with the higher token; a hold without a token counts as none. */
export function higher(
  one: CertainHold | undefined,
  other: CertainHold | undefined,
): CertainHold | undefined {
  if (other?.token === undefined) return one;
  return one?.token === undefined || other.token > one.token ? other : one;
}
