import { runOutside } from '../async-context.ts';
import { MAX_TIMEOUT_MS } from '../backend/time-limit.ts';
import type { Clock } from './clock.ts';

/** More than the clock's noise and the rounding of a delay. */
const LATE_MS = 10;

/**
 * One timer for all that becomes due, which never keeps the process alive. Its owner arms it again when something becomes due
 * earlier than `armedFor`, and says at each firing when the next is due.
 */
export class Timer {
  readonly #clock: Clock;
  readonly #fire: (now: number) => number;
  /** When something is due next; `Infinity` for never. The owner only reads it. */
  armedFor = Number.POSITIVE_INFINITY;
  #handle: NodeJS.Timeout | undefined;
  /** When Node fires the timer, on the monotonic clock, which it uses. */
  #firesAt = Number.POSITIVE_INFINITY;

  /** @param fire - does what is due at `now`, and gives the time at which something is due next, or `Infinity` */
  constructor(clock: Clock, fire: (now: number) => number) {
    this.#clock = clock;
    this.#fire = fire;
    clock.onMove?.(() => {
      if (clock.now() < this.armedFor) return;
      clearTimeout(this.#handle);
      this.#onTimeout();
    });
  }

  /**
   * Makes the timer fire at `dueAt`, unless it fires earlier. Where the clock gained on the monotonic one, as when a machine
   * slept, the timer would fire late for what was due before, too.
   */
  armBy(dueAt: number): void {
    if (dueAt < this.armedFor) return this.arm(dueAt);
    const now = this.#clock.now();
    if (this.#firesAt - performance.now() > dueAt - now + LATE_MS) this.arm(this.armedFor, now);
  }

  /** Makes the timer fire at `dueAt`, instead of when it would have. */
  arm(dueAt: number, now = this.#clock.now()): void {
    clearTimeout(this.#handle);
    this.armedFor = dueAt;
    // Rounded up: a timer that fires a fraction early would find nothing due and fire again at once.
    const delay = Math.min(Math.max(1, Math.ceil(dueAt - now)), MAX_TIMEOUT_MS);
    this.#firesAt = performance.now() + delay;
    // The timer serves all: it must not keep, nor run in, the reentrant scope of the code that happened to arm it.
    this.#handle = runOutside(() => setTimeout(() => this.#onTimeout(), delay));
    this.#handle.unref();
  }

  stop(): void {
    clearTimeout(this.#handle);
    this.#handle = undefined;
    this.armedFor = Number.POSITIVE_INFINITY;
  }

  #onTimeout(): void {
    this.#handle = undefined;
    this.armedFor = Number.POSITIVE_INFINITY;
    const now = this.#clock.now();
    const next = this.#fire(now);
    if (next < this.armedFor) this.arm(next, now);
  }
}
