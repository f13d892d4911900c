/** Where in an iteration of its event loop a process stands still. */
export type StallPlace = (typeof STALL_PLACES)[number];
export const STALL_PLACES = [
  /** What woke the process has been read, and nothing was done about it. */
  'begin',
  'between microtasks',
  'clock read',
  /** Before a timer is set. */
  'timer',
  'before sending',
  'after sending',
] as const;

/** The next time that the process comes to a place, it stands still there. */
export interface Stall {
  readonly ms: number;
  readonly place: StallPlace;
  /** So many times it passes the place before that, and so many microtasks of the iteration. */
  readonly passes: number;
}
