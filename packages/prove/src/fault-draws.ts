/** Random numbers that a seed repeats (mulberry32). */
export class FaultDraws {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A number from 0 up to, not including, 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  between(least: number, most: number): number {
    return least + (most - least) * this.next();
  }

  /** @param of - not empty */
  one<T>(of: readonly T[]): T {
    return of[Math.floor(this.next() * of.length)] as T;
  }

  shuffled<T>(of: readonly T[]): T[] {
    const rest = [...of];
    const result: T[] = [];
    while (rest.length > 0) result.push(...rest.splice(Math.floor(this.next() * rest.length), 1));
    return result;
  }
}
