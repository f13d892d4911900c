/** Beyond the time that a reply told: a key of Redis is gone one millisecond after its last one, and timers round. */
const AFTER_MS = 2;

/**
 * Timers for the moments at which a hold that waiters of this process wait for can end by itself: a holder that was killed
 * or is frozen releases nothing, so somebody must look. The holds that end in one turn of the event loop are told together.
 */
export class HoldEndTimers {
  readonly #ended: (locks: ReadonlySet<string>) => void;
  /** When each hold can end at the earliest, by `performance.now()`. */
  readonly #ends = new Map<string, number>();
  #due = new Set<string>();

  constructor(ended: (locks: ReadonlySet<string>) => void) {
    this.#ended = ended;
  }

  /** A reply told in how many milliseconds a hold of this lock can end. An earlier moment that is known already stays. */
  expect(lock: string, endsInMs: number): void {
    const at = performance.now() + endsInMs;
    if ((this.#ends.get(lock) ?? Number.POSITIVE_INFINITY) <= at) return;
    this.#ends.set(lock, at);
    setTimeout(() => this.#onTime(lock), endsInMs + AFTER_MS).unref();
  }

  /** A timer that an earlier one replaced finds nothing, or looks once too often. */
  #onTime(lock: string): void {
    if (!this.#ends.delete(lock)) return;
    if (this.#due.size === 0) setImmediate(() => this.#tell());
    this.#due.add(lock);
  }

  #tell(): void {
    const locks = this.#due;
    this.#due = new Set();
    this.#ended(locks);
  }
}
