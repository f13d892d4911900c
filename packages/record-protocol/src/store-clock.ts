import { microsSince, type Moment, presentMoment } from './moment.ts';
import { NoTimeError } from './no-time-error.ts';
import type { RecordClock } from './record-store.ts';

/** How much faster or slower one clock may run than another. */
export const DRIFT = 0.01;
/** A time that was told longer ago than this bounds the present one within more than 1.2 s: the drift of a minute, to both sides. */
const OLD_MICROS = 60_000_000;
/** A hold that is granted by a time older than this could end 3 s later than it must. */
const STALE_MICROS = 300_000_000;
/** A time that was told within this counts as the present one. */
const NEW_MICROS = 1_000_000;

/** A time that the store has told. */
interface Told {
  readonly now: number;
  readonly at: Moment;
}

/**
 * Bounds of the time that a store tells with its answers, in microseconds, between and after the answers too. The lower bound is
 * behind the clock of each of its servers, or ahead of the slowest by the skew at most; the upper bound likewise. Where no hold ends by
 * this time, tokens start from it all the same.
 */
export class StoreClock {
  readonly #store: string;
  readonly #stepMicros: number;
  readonly #skewMicros: number;
  readonly #endsHolds: boolean;
  #lower: Told | undefined;
  #upper: Told | undefined;

  /** @param store - the name of the store, for messages */
  constructor({ stepMs, skewMs, endsHolds = true }: RecordClock, store: string) {
    this.#store = store;
    this.#stepMicros = stepMs * 1_000;
    this.#skewMicros = skewMs * 1_000;
    this.#endsHolds = endsHolds;
  }

  /** Whether the store has ever told its time. */
  get isKnown(): boolean {
    return this.#lower !== undefined;
  }

  /** Whether a grant should wait for a newer time: its end could be late by seconds. */
  get isStale(): boolean {
    return !this.isKnown || (this.#endsHolds && this.#age() > STALE_MICROS);
  }

  /** Whether the end of a hold that is written now may be late by more than half a second. */
  get isOld(): boolean {
    return this.#endsHolds && this.#age() > OLD_MICROS;
  }

  /**
   * Learns the time in an answer.
   *
   * @param nowMs - the store's time when it answered, or since the request was sent
   * @param askedAt - when the request was sent
   */
  learn(nowMs: number | undefined, askedAt: Moment): void {
    if (nowMs === undefined) return;
    const at = presentMoment();
    const now = nowMs * 1_000;
    if (now >= (this.lowerAt(at.monotonic) ?? -Infinity)) this.#lower = { now, at };
    // The answer was made at some time since the request.
    const upper = { now: now + this.#stepMicros, at: askedAt };
    if (this.#upper === undefined || ahead(upper) <= ahead(this.#upper)) this.#upper = upper;
  }

  /** The earliest time that the store may have at `at`, on `performance.now()`; `undefined`: not known. */
  lowerAt(at: number): number | undefined {
    if (this.#lower === undefined) return undefined;
    const passed = (at - this.#lower.at.monotonic) * 1_000;
    return this.#lower.now + passed * (passed > 0 ? 1 - DRIFT : 1 + DRIFT);
  }

  /**
   * The time by which a hold of `span` microseconds that is written from now on has ended, whichever server is asked; `undefined` where
   * no hold ends by the store's time.
   *
   * @throws NoTimeError where the store has told none: without an end, a process that lives for a short time would never get the lock of
   * a dead holder
   */
  endOf(span: number): number | undefined {
    if (!this.#endsHolds) return undefined;
    if (this.#upper === undefined) throw new NoTimeError(this.#store);
    return Math.ceil(ahead(this.#upper) + this.#skewMicros + span);
  }

  /** How long it takes at most until the store's time has passed `end`, in microseconds, seen at `at`. */
  untilPassed(end: number, at: number): number | undefined {
    const lower = this.#endsHolds ? this.lowerAt(at) : undefined;
    return lower === undefined ? undefined : Math.max(0, end - lower) / (1 - DRIFT);
  }

  /** Whether a newer time could tell more about holds with these ends than is known. */
  canLearnOf(ends: readonly number[]): boolean {
    if (!this.#endsHolds || ends.length === 0) return false;
    const age = this.#age();
    if (this.#upper === undefined || age > OLD_MICROS) return true;
    if (age <= NEW_MICROS) return false;
    const lower = this.lowerAt(performance.now()) ?? -Infinity;
    const latest = ahead(this.#upper) + this.#skewMicros;
    return ends.some((end) => end > lower && end <= latest);
  }

  #age(): number {
    return this.#upper === undefined ? Infinity : microsSince(this.#upper.at);
  }
}

/** The latest time that the store may have now, also after the machine slept. */
function ahead({ now, at }: Told): number {
  return now + microsSince(at) * (1 + DRIFT);
}
