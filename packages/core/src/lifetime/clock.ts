import { runOutside } from '../async-context.ts';

/** The clock that all deadlines are read on, in milliseconds from an arbitrary start. */
export interface Clock {
  /** The reading in milliseconds. It never goes back. */
  now(): number;
  /** Calls `check` each time after the clock ran ahead of the process's timers: when a test moved it, or the machine slept. */
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
  readonly #checks: (() => void)[] = [];

  /** The time, in milliseconds from an arbitrary start. */
  now(): number {
    let monotonic = performance.now();
    let drift = Date.now() - monotonic - this.#skew;
    if (drift > NOISE_MS) {
      // The process may have stood still between the two readings: that is no time that the monotonic clock has missed.
      monotonic = performance.now();
      drift = Date.now() - monotonic - this.#skew;
    }
    if (drift > NOISE_MS || drift < -NOISE_MS) {
      this.#skew += drift;
      if (drift > 0) this.#gain(drift);
    }
    return monotonic + this.#gained;
  }

  onMove(check: () => void): void {
    this.#checks.push(check);
  }

  #gain(ms: number): void {
    this.#gained += ms;
    // In a later iteration of the event loop: the code that reads the clock does not expect that a lease ends meanwhile.
    for (const check of this.#checks) runOutside(() => setImmediate(check));
  }
}
