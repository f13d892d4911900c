import type { World } from '../kernel/world.ts';

/** What the clocks of one machine show. Reading them changes nothing. */
export class ProcessClock {
  readonly #world: World;
  readonly #drift: number;
  readonly #startedAt: number;
  #wallOffset: number;

  /** @param drift - how much faster than true time the machine's clocks run: 0.005 is half a per cent */
  constructor(world: World, drift: number, wallOffset: number) {
    this.#world = world;
    this.#drift = drift;
    this.#startedAt = world.now;
    this.#wallOffset = wallOffset;
  }

  /** Milliseconds since the process started, as `performance.now()` gives them. */
  monotonic(): number {
    return (this.#world.now - this.#startedAt) * (1 + this.#drift);
  }

  /** Whole milliseconds since 1970, as `Date.now()` gives them. */
  wall(): number {
    return Math.floor(1_790_000_000_000 + this.#wallOffset + this.monotonic());
  }

  /** How long a time by this clock takes in true time. */
  trueTime(ms: number): number {
    return ms / (1 + this.#drift);
  }

  /** Somebody sets the wall clock: the monotonic one goes on as before. */
  jump(ms: number): void {
    this.#wallOffset += ms;
  }
}
