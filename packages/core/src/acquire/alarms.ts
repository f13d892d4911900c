import type { Clock } from '../tenure/clock.ts';
import { Timer } from '../tenure/timer.ts';

/** Something that rings when its time has come, unless it was taken out before. */
export interface Alarm {
  readonly dueAt: number;
  ring(): void;
}

/** The time limits of all calls in progress, on one timer: a call that is answered in time costs no timer. */
export class Alarms {
  readonly #timer: Timer;
  readonly #alarms = new Set<Alarm>();

  constructor(clock: Clock) {
    this.#timer = new Timer(clock, (now) => this.#round(now));
  }

  add(alarm: Alarm): void {
    if (alarm.dueAt === Number.POSITIVE_INFINITY) return;
    this.#alarms.add(alarm);
    this.#timer.noLaterThan(alarm.dueAt);
  }

  delete(alarm: Alarm): void {
    this.#alarms.delete(alarm);
  }

  stop(): void {
    this.#timer.stop();
  }

  #round(now: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const alarm of this.#alarms) {
      if (alarm.dueAt <= now) {
        this.#alarms.delete(alarm);
        alarm.ring();
      } else {
        next = Math.min(next, alarm.dueAt);
      }
    }
    return next;
  }
}
