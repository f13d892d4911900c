import type { RecordClock } from './record-store.ts';

/** How much faster or slower one clock may run than another. */
const DRIFT = 0.01;

/**
 * Bounds of the time that a store tells with its answers, in microseconds, between and after the answers too. The lower bound is
 * behind the clock of each of its servers, or ahead of the slowest by the skew at most; the upper bound likewise.
 */
export class StoreClock {
  readonly #options: RecordClock | undefined;
  #lower: { readonly now: number; readonly at: number } | undefined;
  #upper: { readonly now: number; readonly at: number } | undefined;

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
   * @param askedAt - when the request was sent, on `performance.now()`
   */
  learn(nowMs: number | undefined, askedAt: number): void {
    if (this.#options === undefined || nowMs === undefined) return;
    const at = performance.now();
    const now = nowMs * 1_000;
    if (now >= (this.lowerAt(at) ?? -Infinity)) this.#lower = { now, at };
    // The answer was made at some time since the request.
    const upper = { now: now + this.#options.stepMs * 1_000, at: askedAt };
    if (this.#upper === undefined || ahead(upper, at) <= ahead(this.#upper, at)) this.#upper = upper;
  }

  /** The earliest time that the store may have at `at`; `undefined`: not known. */
  lowerAt(at: number): number | undefined {
    return this.#lower && this.#lower.now + (at - this.#lower.at) * 1_000 * (1 - DRIFT);
  }

  /** The time by which a hold of `span` microseconds that is written from now on has ended, whichever server is asked. */
  endOf(span: number): number | undefined {
    if (this.#options === undefined || this.#upper === undefined) return undefined;
    return Math.ceil(ahead(this.#upper, performance.now()) + this.#options.skewMs * 1_000 + span);
  }

  /** How long it takes at most until the store's time has passed `end`, in microseconds, seen at `at`. */
  untilPassed(end: number, at: number): number | undefined {
    const lower = this.lowerAt(at);
    return lower === undefined ? undefined : Math.max(0, end - lower) / (1 - DRIFT);
  }
}

function ahead({ now, at }: { readonly now: number; readonly at: number }, present: number): number {
  return now + (present - at) * 1_000 * (1 + DRIFT);
}
