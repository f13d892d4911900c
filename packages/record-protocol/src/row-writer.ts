import { setTimeout as sleep } from 'node:timers/promises';
import { type Call, PRIORITIES, type Priority } from '@locks/core/backend';
import { type LockRow, NO_ROW } from './lock-row.ts';
import { type DecisionContext, RowDecision } from './row-decision.ts';
import type { LockTable, RowTaken } from './lock-table.ts';
import type { PollPace } from './poll-pace.ts';
import type { TimeLimit } from './time-limit.ts';

/** One step of the protocol on one resource, decided together with other steps that come in the same moment. */
export interface RowStep {
  readonly call: Call;
  /** The time `call.now()` before the sending of the statement that answers the step. */
  sentAt: number;
  readonly priority: Priority;
  /** Whether the step may add a waiter. */
  readonly enqueues: boolean;
  /** Takes the resource for this acquisition in one request, if its row is unknown. */
  readonly take:
    | { readonly acquisitionId: string; run(table: LockTable, limit: TimeLimit): Promise<RowTaken> }
    | undefined;
  /** Takes part in a decision. May be called again, for a newer decision. */
  decide(decision: RowDecision, ambiguous: boolean): void;
  /** Called when the last decision is written, or needed no write. */
  finish(): void;
  fail(error: unknown): void;
}

/** Whether these steps are those of newcomers alone, which are in no hurry. */
export function areNewcomers(steps: readonly RowStep[]): boolean {
  return steps.every(({ enqueues }) => enqueues);
}

const MAX_GATHERING_MS = 25;
/** For so many writes newcomers let the process of the next waiter enter. */
const CALLED_WRITES = 3;
/** A row counts as crowded for as long as so many writes take, after a write of another process. */
const LATELY_WRITES = 8;
const LONG_STREAK = 16;
const MAX_WRITE_MS = 100;
/** By how many writes the time of the next one is estimated. */
const WRITES_TIMED = 3;

/** The knowledge of this process of one row, and the steps that wait to be decided on it. */
export class RowWriter {
  readonly resource: string;
  readonly pending: RowStep[] = [];
  /** Ids that hold or wait by this backend object. When the last of them leaves, the writer is forgotten. */
  readonly own = new Set<string>();
  /** Ids that are being abandoned: an attempt of such an id that is still on its way here does nothing. */
  readonly abandoned = new Set<string>();
  /** Ids with an attempt under way here: core still asks for them. */
  readonly attempting = new Set<string>();
  /** The row as last read or written here. It may be stale: a write finds out. */
  known: LockRow | undefined;
  /** The table's time at which the row was as `known` says. */
  knownAt = 0;
  /** Whether a write is in flight. Only one is sent at a time: others of this process would collide with it. */
  busy = false;
  /** The urgency of the most urgent step, including the steps that came while the writer waits for a connection. */
  readonly urgency: { priority: Priority } = { priority: PRIORITIES.acquire };
  learnedAt = performance.now();
  /** How many writes of this process have followed one another. */
  #streak = 0;
  /** When this process has written last, unless another has since then, as far as is known here. */
  #wroteAt = -Infinity;
  /** When another process has written last, as far as is known here. */
  #foreignWriteAt = -Infinity;
  /** How long a write takes, in milliseconds: of the last three the middle one. One that was slow says nothing of the next. */
  writeMs = 0;
  /** How long the last writes took, in milliseconds, the latest first. */
  #lastMs: readonly number[] = [];
  /** How often the waiters of this process poll the row: it is kept while nobody here waits, with what it has learned. */
  pace: PollPace | undefined;
  /** Ends a pause of newcomers, for a step that is in a hurry. */
  endPause: (() => void) | undefined;
  /** The row with which the waiters of this process were last compared, and the time of that. */
  compared: LockRow | undefined;
  comparedAt = -Infinity;

  constructor(resource: string) {
    this.resource = resource;
  }

  /** Makes a decision that has served the queue. */
  decide(context: DecisionContext): RowDecision {
    const row = this.known ?? NO_ROW;
    // The clock of this process may be faster than the store's.
    const passed = Math.floor((performance.now() - this.learnedAt) * 900);
    const decision =
      context.now === undefined
        ? new RowDecision(row, this.knownAt, context, passed)
        : new RowDecision(row, context.now(), context, 0);
    decision.serve();
    return decision;
  }

  /** Raises the urgency of the writer to that of one more step. */
  rise(priority: Priority): void {
    if (priority < this.urgency.priority) this.urgency.priority = priority;
  }

  /**
   * Whether all steps that are pending are newcomers behind a queue. They are in no hurry, and go along with the next step that
   * is: writes that follow one another at once would leave the other processes no chance for theirs. Who comes again just after its
   * release is behind the queue before the next one has heard of that.
   */
  get hasTime(): boolean {
    if ((this.known?.waiters.length ?? 0) === 0 || this.#hasJustWritten) return false;
    return areNewcomers(this.pending);
  }

  /** Whether a waiter of another process was about to enter when the row was learned, and may have entered by now. */
  get isOvertaken(): boolean {
    const { holds = [], waiters = [] } = this.known ?? {};
    return holds.length === 0 && waiters.length > 0 && !this.#hasJustWritten;
  }

  /** Whether this process wrote the row so short a time ago that the write of who is called by that can hardly have come. */
  get #hasJustWritten(): boolean {
    return performance.now() - this.#wroteAt < Math.max(1, this.writeMs);
  }

  /** Records the answer to a write: whether it took place, and whether on what this process had written before. */
  wrote(ms: number, isWritten: boolean, isStreak: boolean): void {
    // A write that was repeated after a lost answer says nothing of what others need.
    this.#lastMs = [Math.min(ms, MAX_WRITE_MS), ...this.#lastMs].slice(0, WRITES_TIMED);
    this.writeMs = this.#lastMs.toSorted((a, b) => a - b)[(this.#lastMs.length - 1) >> 1] as number;
    this.#streak = isStreak ? this.#streak + 1 : 0;
    this.#wroteAt = isWritten ? performance.now() : -Infinity;
  }

  /** Records that another process has written: it wants to, and there may be more of them. */
  sawForeignWrite(): void {
    this.#foreignWriteAt = performance.now();
    this.#wroteAt = -Infinity;
    this.#streak = 0;
  }

  /**
   * Leaves a gap in which the write of another process can succeed: while the row changes as fast as it can, all tries of newcomers
   * are stale when they arrive. Where others write, every write leaves a short one; where none seems to, one after many writes
   * finds out.
   */
  async giveWay(): Promise<void> {
    // Newcomers have gathered, which was a gap.
    if (areNewcomers(this.pending)) return;
    const isCrowded = performance.now() - this.#foreignWriteAt < LATELY_WRITES * this.writeMs;
    if (!isCrowded && this.#streak < LONG_STREAK) return;
    const gapMs = isCrowded ? this.writeMs / 2 : 2 * this.writeMs;
    this.#streak = 0;
    // A timer takes a millisecond at least: where a write takes less, a gap would cost more than it helps.
    if (gapMs >= 1) await sleep(gapMs);
  }

  /**
   * Resolves after a pause as long as a write or three, or when a step comes that is in a hurry. Where nobody holds, the process of the
   * next waiter is about to write: newcomers let it.
   */
  async gather(): Promise<void> {
    const least = this.known?.holds.length === 0 ? CALLED_WRITES : 1;
    const pauseMs = Math.min(this.writeMs * (least + 2 * Math.random()), MAX_GATHERING_MS);
    await this.pause(pauseMs);
  }

  /** Resolves after a pause of newcomers, in milliseconds, or when a step comes that is in a hurry. */
  async pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.endPause = undefined;
  }

  /** A row that could not be decoded is not known: it is read anew for each decision. */
  learn(row: LockRow | undefined, at: number): void {
    this.known = row?.malformed === undefined ? row : undefined;
    this.knownAt = at;
    this.learnedAt = performance.now();
  }

  /** Forgets the ids of this process that neither hold nor wait. */
  prune(): void {
    if (this.known === undefined) return;
    const { holds, waiters } = this.known;
    // While there are as many entries as ids, the writer stays in any case.
    if (this.own.size <= holds.length + waiters.length) return;
    const known = new Set([...holds, ...waiters].map(({ id }) => id));
    for (const id of this.own) if (!known.has(id)) this.own.delete(id);
  }
}
