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

/** `Date.now()` gives whole milliseconds: a difference may be too long by one. */
const ROUNDING_MS = 1;

/** The time that has passed since `moment`, in microseconds: the larger of both clocks, as core counts leases. */
export function microsSince({ monotonic, wall }: Moment): number {
  return Math.max(performance.now() - monotonic, Date.now() - wall - ROUNDING_MS) * 1_000;
}
