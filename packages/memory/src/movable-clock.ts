import type { Clock } from '@locks/core/backend';

/** The real time, plus the time that a test added to it. */
export class MovableClock implements Clock {
  readonly #listeners: (() => void)[] = [];
  #moved = 0;

  now(): number {
    return performance.now() + this.#moved;
  }

  onMove(listener: () => void): void {
    this.#listeners.push(listener);
  }

  advance(ms: number): void {
    this.#moved += ms;
    for (const listener of this.#listeners) listener();
  }
}
