/** Taken when the module is loaded: fake timers of a test runner put others in their place. */
const hrtime = process.hrtime.bigint.bind(process.hrtime);
/** The monotonic clock, in nanoseconds. Threads of Node share its origin, those of Bun and Deno do not: `thread-clock.ts`. */
export const monotonicNs = (): bigint => hrtime();

export const NS_PER_MS = 1e6;

/** The state of a lease that the thread keeps. */
export const HELD = 0n;
/** The store no longer has it. Written by the thread. */
export const LOST = 1n;
/** The event loop ended the renewal. */
export const ENDED = 2n;
/** The event loop sends its release, which has no answer yet. */
export const RELEASING = 3n;
/** The thread has sent the release, too. */
export const RELEASE_SENT = 4n;
/** The store has answered the release of the thread: it no longer has the lease. */
export const RELEASE_ANSWERED = 5n;

/** The cells of one lease, in memory of its own that both threads share: nothing is written into the cells of another one. */
export const COUNTED_FROM = 0;
export const STATE = 1;
/** Whether a renewal has no answer, or an unclear one: 1 or 0. */
export const UNCONFIRMED = 2;
/** The loss in the order of {@link REASONS}. */
export const REASON = 3;
export const LEASE_CELLS = 4;

export const REASONS = [
  'expired',
  'session-lost',
  'taken-over',
  'unconfirmed',
  'force-released',
  'closed',
] as const;

/** The cells that concern all leases: the heartbeat of the event loop, in nanoseconds, and a number that the thread counts up. */
export const MAIN_BEAT = 0;
export const THREAD_BEATS = 1;

const LONGEST_BEAT_MS = 1_000;

/** How often the event loop sends heartbeats at least, in milliseconds, while it has a lease of this ttl. */
export function beatEveryMs(maxBlockedMs: number, ttlMs: number): number {
  return Math.min(LONGEST_BEAT_MS, maxBlockedMs / 10, ttlMs / 10);
}

export function sharedCells(count: number): BigInt64Array<SharedArrayBuffer> {
  return new BigInt64Array(new SharedArrayBuffer(count * BigInt64Array.BYTES_PER_ELEMENT));
}
