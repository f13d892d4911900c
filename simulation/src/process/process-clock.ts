import type { World } from '../kernel/world.ts';

/** What the clocks of one machine show. Reading them changes nothing. */
export class ProcessClock {
  readonly #world: World;
  readonly #drift: number;
  readonly #startedAt: number;
  #wallOffset: number;
  #slept = 0;
  #sleepsUntil = 0;
  /** How far the code that runs now is ahead of true time, in milliseconds: in the middle of it the process has stood still. */
  ahead = 0;
  /** Somebody has set the wall clock. */
  hasJumped = false;

  /** @param drift - how much faster than true time the machine's clocks run: 0.005 is half a per cent */
  constructor(world: World, drift: number, wallOffset: number) {
    this.#world = world;
    this.#drift = drift;
    this.#startedAt = world.now;
    this.#wallOffset = wallOffset;
  }

  /** Milliseconds since the process started, as `performance.now()` gives them. */
  monotonic(ahead = this.ahead): number {
    return (this.#world.now + ahead - this.#startedAt) * (1 + this.#drift) - this.#slept;
  }

  /** Whole milliseconds since 1970, as `Date.now()` gives them. */
  wall(): number {
    return Math.floor(1_790_000_000_000 + this.#wallOffset + this.monotonic());
  }

  /** How long a time by this clock takes in true time. */
  trueTime(ms: number): number {
    return ms / (1 + this.#drift);
  }

  /** The machine sleeps for so long, from now on: then its wall clock has gone on, and its monotonic one has not. */
  sleep(ms: number): void {
    // A machine that sleeps already sleeps on: its monotonic clock never goes back.
    const from = Math.max(this.#world.now, this.#sleepsUntil);
    this.#sleepsUntil = Math.max(from, this.#world.now + ms);
    const slept = (this.#sleepsUntil - from) * (1 + this.#drift);
    this.#slept += slept;
    this.jump(slept);
  }

  /** Somebody sets the wall clock: the monotonic one goes on as before. */
  jump(ms: number): void {
    this.#wallOffset += ms;
    this.hasJumped = true;
  }
}
