/** The clock that all deadlines are read on, in milliseconds from an arbitrary start. */
export interface Clock {
  now(): number;
  /** For a clock that a test moves: `check` is called after each move, since timers run on real time. */
  onMove?(check: () => void): void;
}

/** Wall and monotonic time are read one after the other and wall time in whole milliseconds: less than this is noise. */
const NOISE_MS = 5;

/**
 * The larger of monotonic and wall time elapsed (`docs/spec.md` §1.1).
 *
 * The monotonic clock stands still while a machine sleeps, and the wall clock does not: what it gained over the
 * monotonic one is added for good. A wall clock set forward therefore loses leases early, and one set back does nothing.
 */
export class CombinedClock implements Clock {
  #gained = 0;
  #skew = Date.now() - performance.now();

  now(): number {
    const monotonic = performance.now();
    const drift = Date.now() - monotonic - this.#skew;
    if (drift > NOISE_MS || drift < -NOISE_MS) {
      this.#skew += drift;
      if (drift > 0) this.#gained += drift;
    }
    return monotonic + this.#gained;
  }
}
