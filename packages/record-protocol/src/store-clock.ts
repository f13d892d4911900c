import { microsSince, type Moment, presentMoment } from './moment.ts';
import type { RecordClock } from './record-store.ts';

/** How much faster or slower one clock may run than another. */
const DRIFT = 0.01;

/** A time that the store has told. */
interface Told {
  readonly now: number;
  readonly at: Moment;
}

/**
 * Bounds of the time that a store tells with its answers, in microseconds, between and after the answers too. The lower bound is
 * behind the clock of each of its servers, or ahead of the slowest by the skew at most; the upper bound likewise.
 */
export class StoreClock {
  readonly #options: RecordClock | undefined;
  #lower: Told | undefined;
  #upper: Told | undefined;

  constructor(options: RecordClock | undefined) {
    this.#options = options;
  }

  /** Whether the store is expected to tell its time, and has not done so yet. */
  get isAwaited(): boolean {
    return this.#options !== undefined && this.#lower === undefined;
  }

  /**
   * Learns the time in an answer.
   *
   * @param nowMs - the store's time of the answer, or before it
   * @param askedAt - when the request was sent
   */
  learn(nowMs: number | undefined, askedAt: Moment): void {
    if (this.#options === undefined || nowMs === undefined) return;
    const at = presentMoment();
    const now = nowMs * 1_000;
    if (now >= (this.lowerAt(at.monotonic) ?? -Infinity)) this.#lower = { now, at };
    // The answer was made at some time since the request.
    const upper = { now: now + this.#options.stepMs * 1_000, at: askedAt };
    if (this.#upper === undefined || ahead(upper) <= ahead(this.#upper)) this.#upper = upper;
  }

  /** The earliest time that the store may have at `at`, on `performance.now()`; `undefined`: not known. */
  lowerAt(at: number): number | undefined {
    return this.#lower && this.#lower.now + (at - this.#lower.at.monotonic) * 1_000 * (1 - DRIFT);
  }

  /** The time by which a hold of `span` microseconds that is written from now on has ended, whichever server is asked. */
  endOf(span: number): number | undefined {
    if (this.#options === undefined || this.#upper === undefined) return undefined;
    return Math.ceil(ahead(this.#upper) + this.#options.skewMs * 1_000 + span);
  }

  /** How long it takes at most until the store's time has passed `end`, in microseconds, seen at `at`. */
  untilPassed(end: number, at: number): number | undefined {
    const lower = this.lowerAt(at);
    return lower === undefined ? undefined : Math.max(0, end - lower) / (1 - DRIFT);
  }
}

/** The latest time that the store may have now, also after the machine slept. */
function ahead({ now, at }: Told): number {
  return now + microsSince(at) * (1 + DRIFT);
}
