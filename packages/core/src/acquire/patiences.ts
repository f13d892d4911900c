import type { Clock } from '../tenure/clock.ts';
import { Timer } from '../tenure/timer.ts';
import type { Interruption, Patience } from './patience.ts';

/** Everybody who waits for an answer, on one timer: a call that is answered in time costs no timer of its own. */
export class Patiences {
  readonly clock: Clock;
  readonly #timer: Timer;
  readonly #members = new Set<Patience>();
  #interruption: Interruption | undefined;

  constructor(clock: Clock) {
    this.clock = clock;
    this.#timer = new Timer(clock, (now) => this.#round(now));
  }

  add(patience: Patience): void {
    if (!patience.background) patience.interrupt(this.#interruption);
    this.#members.add(patience);
    this.#timer.noLaterThan(patience.deadline);
  }

  delete(patience: Patience): void {
    this.#members.delete(patience);
  }

  /** Interrupts all callers, also those still to come; what core settles in the background goes on. */
  interruptCallers(why: Interruption): void {
    this.#interruption = why;
    for (const patience of this.#members) {
      if (!patience.background) patience.interrupt(why);
    }
  }

  stop(): void {
    this.#timer.stop();
  }

  #round(now: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const patience of this.#members) {
      if (patience.deadline > now) {
        next = Math.min(next, patience.deadline);
      } else {
        this.#members.delete(patience);
        patience.interrupt('deadline');
      }
    }
    return next;
  }
}
