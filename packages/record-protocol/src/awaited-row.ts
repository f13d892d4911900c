import type { LockRow } from './lock-row.ts';
import type { RowChange, TablePace } from './lock-table.ts';
import type { PollPace } from './poll-pace.ts';

/** A waiter of another process that could enter, and did not yet. */
interface IdleHead {
  readonly id: string;
  /** When this process first saw that it could enter, on `performance.now()`. */
  readonly since: number;
  /** Whether this process saw so again. */
  readonly isSeenAgain: boolean;
}

/** A row that somebody of this process waits for: when it is read next. All times are on `performance.now()`. */
export class AwaitedRow {
  readonly pace: PollPace;
  readonly unwatch: (() => void) | undefined;
  /** What a push has told while a write of this process was in flight. */
  missed: RowChange | undefined;
  readonly #tablePace: Pick<TablePace, 'maxPollMs'>;
  readonly #leastPart: number;
  readonly #isHeldHere: () => boolean;
  #idleHead: IdleHead | undefined;
  /** The time from which the row is read along with others. */
  #dueAt = 0;
  /** The time at which the row was last read on its turn. */
  #readAt = performance.now();
  /** The time at which the next of its holds ends unless it is renewed. */
  #endAt = Infinity;

  /**
   * @param leastPart - the part of the time left of a hold after which the row is read to see whether it has ended
   * @param isHeldHere - whether only this process holds the resource, which then needs few polls: its release here serves the queue
   */
  constructor(
    pace: PollPace,
    tablePace: Pick<TablePace, 'maxPollMs'>,
    leastPart: number,
    isHeldHere: () => boolean,
    unwatch: (() => void) | undefined,
  ) {
    this.pace = pace;
    this.unwatch = unwatch;
    this.#tablePace = tablePace;
    this.#leastPart = leastPart;
    this.#isHeldHere = isHeldHere;
  }

  get idleHead(): IdleHead | undefined {
    return this.#idleHead;
  }

  /** The time for which the row needs no poll, in milliseconds. */
  get pauseMs(): number {
    if (this.#isHeldHere()) return this.#tablePace.maxPollMs;
    const { pauseMs } = this.pace;
    // A waiter that could enter and does not may have died, and those behind it too.
    return this.#idleHead?.isSeenAgain === true ? Math.min(pauseMs, this.#tablePace.maxPollMs) : pauseMs;
  }

  /** Takes the turn of the row in a read of several rows, if it is due. */
  takeTurn(now: number): boolean {
    if (this.#dueAt > now) return false;
    this.#dueAt = Infinity;
    this.#readAt = now;
    return true;
  }

  /** Lets the row be due at once: it may have changed. */
  becomeDue(): void {
    this.pace.mayHaveChanged();
    this.#dueAt = 0;
  }

  /** Lets the row be due after half of a pause at the latest. Returns the pause, in milliseconds. */
  becomeDueSoon(): number {
    const { pauseMs } = this;
    this.#dueAt = Math.min(this.#dueAt, performance.now() + pauseMs / 2);
    return pauseMs;
  }

  /** Lets the row be due after half of a pause, and no sooner: its present state is known. */
  becomeDueLater(): void {
    this.#dueAt = performance.now() + this.pauseMs / 2;
  }

  /** Where pushes tell of the writes of others, polls are for the case that none comes any more. */
  heard(): void {
    const { pace } = this;
    pace.heard();
    const now = performance.now();
    if (!pace.isNear && this.#dueAt > now)
      this.#dueAt = Math.min(now + pace.pauseMs, this.#readAt + pace.farthestMs);
  }

  /** Plans the next read. Returns within how many milliseconds it is to come, and when a hold may end whose end is to be seen. */
  plan(now: number): { readonly pauseMs: number; readonly endAt: number } {
    const { pauseMs } = this;
    // Names whose time comes soon are read along: all names of a quiet process are read in one request.
    const soonMs = Math.min(pauseMs, this.#tablePace.maxPollMs) / 2;
    // Who is far behind leaves the end of a hold to those ahead.
    const endAt = this.pace.isNear ? this.#endAt : Infinity;
    const leftMs = this.#dueAt > now ? this.#dueAt + soonMs - now : pauseMs;
    this.#dueAt = Math.min(this.#dueAt, now + pauseMs - soonMs, endAt);
    return { pauseMs: Math.min(pauseMs, leftMs), endAt };
  }

  /** Records when the next hold ends, where the row was so at `tableNow` by the table's clock. */
  noteEnds({ holds }: LockRow, tableNow: number): void {
    this.#endAt = Infinity;
    for (const { until } of holds) {
      if (until === undefined) continue;
      // The table's clock ticks on while its answer is on the way: a poll a little later is not in vain.
      const endAt = performance.now() + (this.#leastPart * Math.max(0, until - tableNow)) / 1_000 + 1;
      this.#endAt = Math.min(this.#endAt, endAt);
    }
  }

  /** Records which waiter of another process could enter. Returns since when that is known; `undefined`: this process sees it now. */
  noteIdleHead(id: string | undefined): number | undefined {
    const since = id === this.#idleHead?.id ? this.#idleHead?.since : undefined;
    const isSeenAgain = since !== undefined;
    this.#idleHead = id === undefined ? undefined : { id, since: since ?? performance.now(), isSeenAgain };
    return since;
  }
}
