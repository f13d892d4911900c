/** The delay after the time in a reply: a key of Redis is gone one millisecond after its last one, and timers round. */
const AFTER_MS = 2;

/**
 * Timers for the moments at which a hold that waiters of this process wait for can end by itself: a holder that was killed
 * or is frozen releases nothing, so a check is needed. Holds that end in one iteration of the event loop are reported together.
 */
export class HoldEndTimers {
  readonly #ended: (resources: ReadonlySet<string>) => void;
  /** The earliest end of each hold, by `performance.now()`. */
  readonly #ends = new Map<string, number>();
  #due = new Set<string>();

  constructor(ended: (resources: ReadonlySet<string>) => void) {
    this.#ended = ended;
  }

  /**
   * Records the earliest end of a hold of this resource, in milliseconds from now, as a reply told it. An earlier known end stays.
   */
  expect(resource: string, endsInMs: number): void {
    const at = performance.now() + endsInMs;
    if ((this.#ends.get(resource) ?? Number.POSITIVE_INFINITY) <= at) return;
    this.#ends.set(resource, at);
    setTimeout(() => this.#onTime(resource), endsInMs + AFTER_MS).unref();
  }

  /** Handles a timer. One that an earlier timer replaced finds nothing, or causes one check too many. */
  #onTime(resource: string): void {
    if (!this.#ends.delete(resource)) return;
    if (this.#due.size === 0) setImmediate(() => this.#tell());
    this.#due.add(resource);
  }

  #tell(): void {
    const resources = this.#due;
    this.#due = new Set();
    this.#ended(resources);
  }
}
