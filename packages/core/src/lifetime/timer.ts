import { runOutside } from '../async-context.ts';
import { MAX_TIMEOUT_MS } from '../backend/time-limit.ts';
import type { Clock } from './clock.ts';

/**
 * One timer for all that becomes due, which never keeps the process alive. Its owner arms it again when something becomes due
 * earlier than `armedFor`, and says at each firing when the next is due.
 */
export class Timer {
  readonly #clock: Clock;
  readonly #fire: (now: number) => number;
  /** When something is due next; `Infinity` for never. The owner only reads it. */
  armedFor = Number.POSITIVE_INFINITY;
  /** When the event loop was to fire it. Until it has, it stands still at least since then; what was due when it was armed is not late. */
  dueSince = Number.POSITIVE_INFINITY;
  #handle: NodeJS.Timeout | undefined;

  /** @param fire - does what is due at `now`, and gives the time at which something is due next, or `Infinity` */
  constructor(clock: Clock, fire: (now: number) => number) {
    this.#clock = clock;
    this.#fire = fire;
    clock.onMove?.(() => {
      if (this.#handle === undefined) return;
      const now = clock.now();
      if (now < this.armedFor) return this.arm(this.armedFor, now);
      clearTimeout(this.#handle);
      this.#onTimeout();
    });
  }

  /** Makes the timer fire at `dueAt`, instead of when it would have. */
  arm(dueAt: number, now = this.#clock.now()): void {
    clearTimeout(this.#handle);
    this.armedFor = dueAt;
    // Rounded up: a timer that fires a fraction early would find nothing due and fire again at once.
    const delay = Math.min(Math.max(1, Math.ceil(dueAt - now)), MAX_TIMEOUT_MS);
    this.dueSince = Math.min(this.dueSince, now + delay);
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
    const next = Math.min(this.#fire(now), this.armedFor);
    this.dueSince = Number.POSITIVE_INFINITY;
    if (next === Number.POSITIVE_INFINITY) return;
    // Listeners of what was due may have blocked the event loop: the clock is read anew, or the timer would be late by as much.
    this.arm(next);
    // The event loop has stood still since then if they have.
    this.dueSince = Math.min(this.dueSince, now + Math.max(1, Math.ceil(next - now)));
  }
}
