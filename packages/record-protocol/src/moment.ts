/**
 * A moment by both clocks of this process. The monotonic clock stands still while the machine sleeps, and the wall clock does not, but
 * somebody may set it.
 */
export interface Moment {
  /** `performance.now()`. */
  readonly monotonic: number;
  /** `Date.now()`. */
  readonly wall: number;
}

export function presentMoment(): Moment {
  return { monotonic: performance.now(), wall: Date.now() };
}

/** As in core's clock: wall and monotonic time are read one after the other, and wall time in whole milliseconds. */
const NOISE_MS = 5;

/** The time that has passed since `moment`, in microseconds: the larger of both clocks, as core counts leases. */
export function microsSince({ monotonic, wall }: Moment): number {
  const passedMs = performance.now() - monotonic;
  const passedOnWallMs = Date.now() - wall;
  return (passedOnWallMs - passedMs > NOISE_MS ? passedOnWallMs : passedMs) * 1_000;
}
