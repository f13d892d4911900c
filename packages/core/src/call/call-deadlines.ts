import type { Clock } from '../lifetime/clock.ts';
import { Timer } from '../lifetime/timer.ts';

/** Phases of closing a manager: first it refuses new acquires, then everything. */
export const DRAINING = 1;
export const CLOSED = 2;
/** The phase at which core's background calls end: no phase of closing interrupts them. */
export const NEVER = Number.POSITIVE_INFINITY;

/** Why a caller stopped waiting. */
export type Interruption = 'deadline' | 'aborted' | 'closed';

/** A call that is interrupted at its deadline, or when the manager closes. */
export interface Interruptible {
  /** When the deadline is looked at: the key of the heap, which only `CallDeadlines` moves. */
  dueAt: number;
  readonly reviewAt: number;
  /** Whether the deadline has come; if not, it is looked at again at `reviewAt`. */
  isOver(now: number): boolean;
  /** The phase of closing that interrupts the call. */
  readonly interruptedFromPhase: number;
  /** The index of the call in the heap; `OVER` after its deadline, and else negative while it is not there. */
  heapIndex: number;
  interrupt(why: Interruption): void;
}

/** The `heapIndex` of a call whose deadline has come, until the sockets have been read. */
const OVER = -2;

/** The most calls interrupted in one iteration of the event loop: when thousands end together, renewals come in between. */
export const INTERRUPTED_AT_ONCE = 256;

/**
 * The deadlines of all calls of a manager, on one timer: a call that is answered in time costs no timer of its own. A binary
 * heap: its first entry is due first, and the work for one call grows with the logarithm of their number.
 *
 * A deadline that comes is no verdict yet. In a process that stood still timers fire before sockets are read: the time of the stall does
 * not count ({@link TimeBudget}), and an answer that has arrived is read before its call is interrupted (docs/spec.md §2.9).
 */
export class CallDeadlines {
  readonly clock: Clock;
  readonly #timer: Timer;
  readonly #heap: Interruptible[] = [];
  /** The phase of closing that the manager has reached; 0 while it is open. */
  #phase = 0;
  /** Calls whose user signal aborted, and that are interrupted in a later iteration of the event loop. */
  readonly #aborted: Interruptible[] = [];
  #interruptedInIteration = 0;

  constructor(clock: Clock) {
    this.clock = clock;
    this.#timer = new Timer(clock, (now) => this.#onTimer(now));
  }

  add(entry: Interruptible): void {
    if (this.#phase >= entry.interruptedFromPhase) entry.interrupt('closed');
    this.#heap.push(entry);
    this.#rise(entry, this.#heap.length - 1);
    if (entry.dueAt < this.#timer.armedFor) this.#timer.arm(entry.dueAt);
  }

  /** Calls `action` at `time`, also while the manager closes; returns a function that cancels that. */
  at(time: number, action: () => void): () => void {
    const entry = {
      dueAt: time,
      reviewAt: time,
      isOver: () => true,
      interruptedFromPhase: NEVER,
      heapIndex: -1,
      interrupt: action,
    };
    this.add(entry);
    return () => this.delete(entry);
  }

  delete(entry: Interruptible): void {
    const { heapIndex } = entry;
    entry.heapIndex = -1;
    if (heapIndex < 0) return;
    const last = this.#heap.pop() as Interruptible;
    if (last === entry) return;
    this.#sink(last, heapIndex);
    this.#rise(last, last.heapIndex);
  }

  /** Whether the manager has reached a phase of closing. */
  hasReached(phase: number): boolean {
    return this.#phase >= phase;
  }

  /** Enters a phase of closing: new calls that end at it are refused. The returned function interrupts those in flight. */
  enter(phase: number): () => void {
    this.#phase = phase;
    return () => this.interruptUpTo(phase);
  }

  /** Interrupts the calls in flight that end at a phase of closing, or before. */
  interruptUpTo(phase: number): void {
    for (const entry of [...this.#heap]) if (phase >= entry.interruptedFromPhase) entry.interrupt('closed');
  }

  /** Interrupts a call whose user signal aborted, at once or in a later iteration of the event loop. */
  abort(entry: Interruptible): void {
    if (this.#interruptedInIteration === 0) setImmediate(() => this.#nextIteration());
    this.#interruptedInIteration += 1;
    if (this.#interruptedInIteration <= INTERRUPTED_AT_ONCE) entry.interrupt('aborted');
    else this.#aborted.push(entry);
  }

  stop(): void {
    this.#timer.stop();
  }

  #nextIteration(): void {
    this.#interruptedInIteration = 0;
    for (const entry of this.#aborted.splice(0, INTERRUPTED_AT_ONCE)) this.abort(entry);
  }

  #onTimer(now: number): number {
    const over: Interruptible[] = [];
    let next = now;
    for (let looks = 0; looks < INTERRUPTED_AT_ONCE; looks += 1) {
      const [first] = this.#heap;
      next = first?.dueAt ?? Number.POSITIVE_INFINITY;
      if (first === undefined || next > now) break;
      this.delete(first);
      if (first.isOver(now)) {
        first.heapIndex = OVER;
        over.push(first);
      } else {
        first.dueAt = first.reviewAt;
        this.#rise(first, this.#heap.push(first) - 1);
      }
    }
    if (over.length > 0) setImmediate(interruptAll, over);
    return next;
  }

  #rise(entry: Interruptible, from: number): void {
    let index = from;
    while (index > 0) {
      const above = (index - 1) >> 1;
      const other = this.#heap[above] as Interruptible;
      if (other.dueAt <= entry.dueAt) break;
      this.#heap[index] = other;
      other.heapIndex = index;
      index = above;
    }
    this.#heap[index] = entry;
    entry.heapIndex = index;
  }

  #sink(entry: Interruptible, from: number): void {
    let index = from;
    for (;;) {
      let below = 2 * index + 1;
      const [left, right] = [this.#heap[below], this.#heap[below + 1]];
      if (left === undefined) break;
      if (right !== undefined && right.dueAt < left.dueAt) below += 1;
      const other = this.#heap[below] as Interruptible;
      if (other.dueAt >= entry.dueAt) break;
      this.#heap[index] = other;
      other.heapIndex = index;
      index = below;
    }
    this.#heap[index] = entry;
    entry.heapIndex = index;
  }
}

/** Interrupts the calls whose deadline has come, but for those that were answered meanwhile. */
function interruptAll(over: readonly Interruptible[]): void {
  for (const entry of over) if (entry.heapIndex === OVER) entry.interrupt('deadline');
}
