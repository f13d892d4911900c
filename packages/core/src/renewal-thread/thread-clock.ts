import { monotonicNs } from './shared-lease.ts';

/** How often the clock of the other thread is asked for, where the origins differ: the fastest answer counts. */
const READINGS = 10;

const SHARES_ORIGIN = !('bun' in process.versions || 'deno' in process.versions);

/**
 * The monotonic clock of the thread that started this one. Threads of Node share it. Those of Bun and Deno count from the start of each: a
 * message shows how far they are apart at least, and so this clock is behind by the time of the fastest message, never ahead.
 */
export class ThreadClock {
  #offset: bigint | undefined = SHARES_ORIGIN ? 0n : undefined;
  #readings = 0;

  /** In nanoseconds. */
  now(): bigint {
    return monotonicNs() + (this.#offset ?? 0n);
  }

  /** Whether the other thread need not be asked again. */
  get isKnown(): boolean {
    return SHARES_ORIGIN || this.#readings >= READINGS;
  }

  /** @param at - when a message was sent, on the clock of the other thread */
  received(at: bigint): void {
    this.#readings += 1;
    const offset = at - monotonicNs();
    if (!SHARES_ORIGIN && (this.#offset === undefined || offset > this.#offset)) this.#offset = offset;
  }
}
