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

/** The time that has passed since `moment` at most, in microseconds: the larger of both clocks, as core counts leases. */
export function microsSince({ monotonic, wall }: Moment): number {
  return Math.max(performance.now() - monotonic, Date.now() - wall) * 1_000;
}
