import type { LockRow } from './lock-row.ts';
import type { TablePace } from './lock-table.ts';

/** How much longer the shortest pause is for a process with others ahead of its waiter than for the one whose waiter is next. */
const BEHIND = 2.5;
/** The share by which each pause is longer than the one before, for as long as nothing changes. */
const GROWTH = 0.4;
/** The part of the turns before its own that a process leaves out: the estimate of their time may be too long. */
const SKIPPED_PART = 0.8;
/** By how many turns the time of the next ones is estimated. */
const TURNS_TIMED = 4;
/** The longest pause for each of these turns, in milliseconds: the next ones may be shorter than those before. */
const MAX_SKIP_MS = 50;
/** Up to so many turns before its own a process polls as often as the next one while nothing changes. */
const NEAR = 3;
/** How much longer the longest pause is for who is far behind. */
const FAR = 2.5;
/** The longest pause of who is far behind, once nothing has happened for long, in times of that of the next few. */
const FARTHEST = 12;
/** Nothing has happened for long after so many of the longest usual pauses. */
const LONG = 2;
/** A turn takes so long at least where nothing tells of its end, in milliseconds: who is further behind may be away for longer. */
const LEAST_TURN_MS = 100;
/** So many pushes since the last read may be renewals. */
const RENEWALS = 2;
/** With more turns before its own than that, a client is in the back of the crowd. */
const BACK = 6;
/** The shortest pause where a push says whose turn has come, in milliseconds: polls find what was not told. */
const CALLED_MS = 200;

/**
 * The pace of the polls of a resource: fast after a change, ever slower while nothing happens. A process with others ahead of
 * its first waiter leaves out a part of the time that their turns took of late, and is not called by every push.
 */
export class PollPace {
  readonly #pace: TablePace;
  readonly #isCalled: () => boolean;
  #changedAt = performance.now();
  /**
   * The number of turns before that of this process's first waiter, including the present one, and the time at which it was
   * learned.
   */
  #ahead = 0;
  #aheadAt = 0;
  #holders = '';
  /** How long turns took of late, in milliseconds, the latest first. */
  #turnsMs: readonly number[] = [];
  /** The number of pushes since `#ahead` was learned. */
  #pushes = 0;

  /** @param isCalled - whether a push says whose turn has come */
  constructor(pace: TablePace, isCalled: () => boolean) {
    this.#pace = pace;
    this.#isCalled = isCalled;
  }

  /** Records the row as it is now. A renewal, and a newcomer behind the waiters of this client, bring no turn nearer. */
  changed({ holds, waiters }: LockRow, client: string): void {
    this.#pushes = 0;
    const ahead = waiters.findIndex((waiter) => waiter.client === client) + Math.min(1, holds.length);
    const holders = JSON.stringify(holds.map(({ id, mode }) => [id, mode]));
    if (ahead === this.#ahead && holders === this.#holders) return;
    const now = performance.now();
    if (ahead < this.#ahead) {
      const turnMs = (now - this.#aheadAt) / (this.#ahead - ahead);
      this.#turnsMs = [turnMs, ...this.#turnsMs].slice(0, TURNS_TIMED);
    }
    this.#ahead = ahead;
    this.#aheadAt = now;
    this.#holders = holders;
    this.#changedAt = now;
  }

  /** Records that the row may have changed: nobody here has read it. */
  mayHaveChanged(): void {
    this.#changedAt = performance.now();
  }

  /**
   * Records a push of the store, and returns whether the resource is to be read: each write ends one turn, so that some pushes cannot have
   * brought that of this process.
   */
  pushed(): boolean {
    this.#pushes += 1;
    return this.#pushes >= this.#ahead;
  }

  /** Records a push that says that the turn of this process has not come. */
  heard(): void {
    this.#pushes += 1;
    if (this.#pushes > RENEWALS) this.#changedAt = performance.now();
  }

  /** Whether only a few turns are before that of this process. */
  get isNear(): boolean {
    return this.#ahead <= NEAR;
  }

  /** For how long nothing has happened while many turns are before that of this process, in milliseconds. */
  get idleInBackMs(): number {
    return this.#ahead > BACK ? performance.now() - this.#changedAt : 0;
  }

  /** The time for which the resource need not be read, in milliseconds. */
  get pauseMs(): number {
    const quietMs = performance.now() - this.#changedAt;
    const usualMs = this.#pace.maxPollMs * Math.min(Math.max(1, this.#ahead / NEAR), FAR);
    if (this.isNear || quietMs < LONG * usualMs) return Math.min(this.#soonMs(quietMs), usualMs);
    const untilTurnMs = this.#isCalled() ? Infinity : (this.#ahead - 1) * LEAST_TURN_MS;
    return Math.max(usualMs, Math.min(quietMs, untilTurnMs, this.farthestMs));
  }

  /** The longest time without a read, in milliseconds, whatever is told. */
  get farthestMs(): number {
    return this.#pace.maxPollMs * FARTHEST;
  }

  /** The pause after so long a time without a change, in milliseconds: until the turns before its own are likely over, and short ones then. */
  #soonMs(quietMs: number): number {
    const { minPollMs, maxPollMs, pollsPresentTurn } = this.#pace;
    const isNext = this.#ahead <= 1;
    let leastMs = minPollMs * (isNext ? 1 : BEHIND);
    if (this.#isCalled()) leastMs = isNext ? Math.max(minPollMs, CALLED_MS) : maxPollMs * FAR;
    // The lower median: turns that were long for a poll which came late must not make the next ones later.
    const turnsMs = this.#turnsMs.toSorted((a, b) => a - b);
    const turnMs = Math.min(SKIPPED_PART * (turnsMs[(turnsMs.length - 1) >> 1] ?? 0), MAX_SKIP_MS);
    const leftMs = turnMs * Math.max(0, this.#ahead - Number(pollsPresentTurn)) - quietMs;
    return leftMs > 0 ? Math.max(leastMs, leftMs) : leastMs - GROWTH * leftMs;
  }
}
