import type { LockRow } from './lock-row.ts';

/** The shortest pauses between two polls: of the process whose waiter is next, and of one with others before it. */
const NEXT_POLL_MS = 2;
const MIN_POLL_MS = 5;
/** Each pause is longer than the one before by this share, for as long as nothing changes. */
const GROWTH = 0.4;
/** The longest pause that is left out because others are before: what it is taken from may change. */
const MAX_SKIP_MS = 50;

/**
 * When to look at one resource again: soon after a change, and ever later while nothing happens. A process with others before its
 * first waiter leaves out half of the time that their turns took of late.
 */
export class PollPace {
  #changedAt = performance.now();
  /** How many turns come before that of this process's first waiter, the present one included; when that was learned. */
  #ahead = 0;
  #aheadAt = 0;
  #turnMs = 0;

  /** Takes note that the resource changed, or may have. */
  changed(row?: LockRow, client?: string): void {
    const now = performance.now();
    this.#changedAt = now;
    if (row === undefined) return;
    const ahead = row.waiters.findIndex((waiter) => waiter.client === client) + Math.min(1, row.holds.length);
    if (ahead < this.#ahead) this.#turnMs = (now - this.#aheadAt) / (this.#ahead - ahead);
    this.#ahead = ahead;
    this.#aheadAt = now;
  }

  /** For how long nothing needs to be read. */
  get pauseMs(): number {
    const quietMs = performance.now() - this.#changedAt;
    return this.#leastMs + GROWTH * quietMs;
  }

  get #leastMs(): number {
    // Between the next one and its turn stands nobody who could take time.
    if (this.#ahead <= 1) return NEXT_POLL_MS;
    const skippedMs = ((this.#ahead - 1) * this.#turnMs) / 2;
    return Math.max(MIN_POLL_MS, Math.min(skippedMs, MAX_SKIP_MS));
  }
}
