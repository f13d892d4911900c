/** A timer is late by less than this on a machine that is merely busy, in milliseconds. */
const NOISE_MS = 5;
/** Of a step that ended late, at most this part counts as time for which the event loop stood still: so every budget ends. */
const LARGEST_STALLED_PART = 3 / 4;
/** So many late looks count: a process that stands still again and again has read its sockets as often. */
const MOST_STALLS = 4;
/** A step is no shorter than this, in milliseconds, unless the budget is. */
const SHORTEST_STEP_MS = 10;

/**
 * A time limit that counts only time in which an answer could arrive (docs/spec.md §2.9). Its owner looks at it with a timer at `reviewAt`:
 * a look that comes late shows for how long the event loop stood still, and that time is added.
 *
 * The first look comes after half of the time: a stall that begins with the sending leaves at least half of the budget.
 */
export class TimeBudget {
  /** When the owner looks next, on the clock that `isOver` is given; `Infinity` for never. */
  reviewAt: number;
  /** The time that an answer has from the beginning of the present step on. */
  #leftMs: number;
  #stepMs: number;
  #stalls = 0;
  readonly #latest: number;
  #isOver = false;

  /**
   * @param limitMs - in milliseconds; `Infinity` sets no limit
   * @param latest - the end that no stall moves
   */
  constructor(startedAt: number, limitMs: number, latest = Number.POSITIVE_INFINITY) {
    this.#leftMs = limitMs;
    // An end that no stall moves needs no look before it.
    this.#stepMs = startedAt + limitMs < latest ? limitMs / 2 : limitMs;
    this.#latest = latest;
    this.reviewAt = Math.min(startedAt + this.#stepMs, latest);
  }

  /** When the budget ends, as far as is known at the last look. */
  get endsAt(): number {
    if (this.reviewAt === Number.POSITIVE_INFINITY || this.#isOver) return this.reviewAt;
    return Math.min(this.reviewAt + this.#leftMs - this.#stepMs, this.#latest);
  }

  /** Looks at the budget. While it is not over, the owner looks again at `reviewAt`. */
  isOver(now: number): boolean {
    while (!this.#isOver && now >= this.reviewAt) {
      const lateMs = now - this.reviewAt;
      // The loop stood still for the time by which the look is late, and perhaps for as long before.
      const isStall = lateMs >= NOISE_MS && this.#stalls < MOST_STALLS;
      const stalledMs = isStall ? Math.min(lateMs, LARGEST_STALLED_PART * this.#stepMs) : 0;
      if (isStall) this.#stalls += 1;
      this.#leftMs -= this.#stepMs - stalledMs;
      if (this.#leftMs <= 0 || now >= this.#latest) this.#isOver = true;
      else {
        const from = stalledMs === 0 ? this.reviewAt : now;
        this.#stepMs =
          stalledMs === 0
            ? this.#leftMs
            : Math.min(this.#leftMs, Math.max(this.#leftMs / 2, SHORTEST_STEP_MS));
        this.reviewAt = Math.min(from + this.#stepMs, this.#latest);
      }
    }
    return this.#isOver;
  }
}

/** Calls `action` when a look at the budget finds it over, and what had arrived by then has been read: timers fire before that. */
export class BudgetTimer {
  readonly #budget: TimeBudget;
  readonly #now: () => number;
  readonly #action: () => void;
  #timer: NodeJS.Timeout | undefined;
  #isCleared = false;
  #keepsAlive = true;

  constructor(budget: TimeBudget, action: () => void, now = (): number => performance.now()) {
    this.#budget = budget;
    this.#now = now;
    this.#action = action;
    this.#look();
  }

  /** Lets the process end before the budget does. */
  unref(): void {
    this.#keepsAlive = false;
    this.#timer?.unref();
  }

  /** Ends the timer: `action` is not called any more. */
  clear(): void {
    this.#isCleared = true;
    clearTimeout(this.#timer);
  }

  #look(): void {
    const now = this.#now();
    if (this.#budget.isOver(now)) {
      setImmediate(() => {
        if (!this.#isCleared) this.#action();
      });
      return;
    }
    this.#timer = setTimeout(() => this.#look(), this.#budget.reviewAt - now);
    if (!this.#keepsAlive) this.#timer.unref();
  }
}
