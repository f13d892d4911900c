/** Wall time is read in whole milliseconds, and not in the same moment as monotonic time. */
const NOISE_MS = 5;

/**
 * When the server last answered, by when it was asked. Time elapsed is the larger of monotonic and wall time elapsed
 * (docs/spec.md §1.1), reckoned here so that it holds for the clock of whoever asks.
 */
export class LifeSign {
  #monotonic: number;
  #wall: number;

  constructor(askedAt: Moment) {
    this.#monotonic = askedAt.monotonic;
    this.#wall = askedAt.wall;
  }

  get elapsedMs(): number {
    const monotonic = performance.now() - this.#monotonic;
    const wall = Date.now() - this.#wall;
    return wall > monotonic + NOISE_MS ? wall : monotonic;
  }

  /** Nobody relies on what was known before. */
  restart(): void {
    this.#monotonic = performance.now();
    this.#wall = Date.now();
  }

  /** An answer came to what was asked at `askedAt`. */
  seen(askedAt: Moment): void {
    if (askedAt.monotonic <= this.#monotonic) return;
    this.#monotonic = askedAt.monotonic;
    this.#wall = askedAt.wall;
  }
}

export interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

export function thisMoment(): Moment {
  return { monotonic: performance.now(), wall: Date.now() };
}
