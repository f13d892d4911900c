import type { LockRow } from './lock-row.ts';

/** How much longer the shortest pause is for a process with others ahead of its waiter than for the one whose waiter is next. */
const BEHIND = 2.5;
/** The share by which each pause is longer than the one before, for as long as nothing changes. */
const GROWTH = 0.4;
/** The longest pause that is added because others are ahead: the estimate behind it may change. */
const MAX_SKIP_MS = 50;

/**
 * The pace of the polls of a resource: fast after a change, ever slower while nothing happens. A process with others ahead of
 * its first waiter leaves out half of the time that their turns took of late.
 */
export class PollPace {
  readonly #nextMs: number;
  #changedAt = performance.now();
  /**
   * The number of turns before that of this process's first waiter, including the present one, and the time at which it was
   * learned.
   */
  #ahead = 0;
  #aheadAt = 0;
  #holders = '';
  #turnMs = 0;

  /** @param nextMs - the shortest pause, for the process whose waiter is next, in milliseconds */
  constructor(nextMs: number) {
    this.#nextMs = nextMs;
  }

  /** Records that the resource changed, or may have. A renewal, and a newcomer behind the waiters of this process, bring no turn nearer. */
  changed(row?: LockRow, client?: string): void {
    const now = performance.now();
    if (row !== undefined) {
      const ahead =
        row.waiters.findIndex((waiter) => waiter.client === client) + Math.min(1, row.holds.length);
      const holders = JSON.stringify(row.holds.map(({ id, mode }) => [id, mode]));
      if (ahead === this.#ahead && holders === this.#holders) return;
      if (ahead < this.#ahead) this.#turnMs = (now - this.#aheadAt) / (this.#ahead - ahead);
      this.#ahead = ahead;
      this.#aheadAt = now;
      this.#holders = holders;
    }
    this.#changedAt = now;
  }

  /** The time for which the resource need not be read, in milliseconds. */
  get pauseMs(): number {
    const quietMs = performance.now() - this.#changedAt;
    return this.#leastMs + GROWTH * quietMs;
  }

  get #leastMs(): number {
    // The next waiter has nobody ahead of it who could take time.
    if (this.#ahead <= 1) return this.#nextMs;
    const skippedMs = ((this.#ahead - 1) * this.#turnMs) / 2;
    return Math.max(BEHIND * this.#nextMs, Math.min(skippedMs, MAX_SKIP_MS));
  }
}
