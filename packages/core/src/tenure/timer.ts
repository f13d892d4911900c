import { runOutside } from '../scope/context.ts';
import type { Clock } from './clock.ts';

/** `setTimeout` fires at once above this. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * One timer for whatever is due next. It never keeps the process alive. Asking for an earlier time re-arms it; a later
 * one is left to the owner, who says at each firing when the next is due.
 */
export class Timer {
  readonly #clock: Clock;
  readonly #fire: (now: number) => number;
  #handle: NodeJS.Timeout | undefined;
  #armedFor = Number.POSITIVE_INFINITY;

  /** `fire` does what is due at `now` and gives the time at which something is due next, or `Infinity`. */
  constructor(clock: Clock, fire: (now: number) => number) {
    this.#clock = clock;
    this.#fire = fire;
  }

  /** When it fires next; `Infinity` for never. */
  get armedFor(): number {
    return this.#armedFor;
  }

  /** Makes sure that the timer fires at `dueAt` or before. */
  noLaterThan(dueAt: number): void {
    if (dueAt >= this.#armedFor) return;
    this.#arm(dueAt, this.#clock.now());
  }

  stop(): void {
    clearTimeout(this.#handle);
    this.#handle = undefined;
    this.#armedFor = Number.POSITIVE_INFINITY;
  }

  #arm(dueAt: number, now: number): void {
    clearTimeout(this.#handle);
    this.#armedFor = dueAt;
    // Rounded up: a timer that fires a fraction early would find nothing due and fire again at once.
    const delay = Math.min(Math.max(1, Math.ceil(dueAt - now)), LONGEST_TIMEOUT_MS);
    // It serves all: it must not keep, nor run in, the reentrant scope of whoever happened to arm it.
    this.#handle = runOutside(() => setTimeout(() => this.#onTime(), delay));
    this.#handle.unref();
  }

  #onTime(): void {
    this.#handle = undefined;
    this.#armedFor = Number.POSITIVE_INFINITY;
    const firedAt = this.#clock.now();
    const next = this.#fire(firedAt);
    if (next < this.#armedFor) this.#arm(next, firedAt);
  }
}
