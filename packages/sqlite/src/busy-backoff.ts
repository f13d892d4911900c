/** The number of tries without a pause: other processes hold the file for less than a millisecond as a rule. */
const TRIES_AT_ONCE = 2;
const MAX_PAUSE_MS = 8;
/** The time that one try may keep the event loop busy. */
const MAX_SPIN_MS = 1;
/** The time of waiting, in milliseconds, after which a try has its full length. */
const SPIN_GROWTH_MS = 200;

/** The backoff of one backend object while other processes have the file: the longer it has waited, the harder it tries. */
export class BusyBackoff {
  #tries = 0;
  #since = 0;

  get isWaiting(): boolean {
    return this.#tries > 0;
  }

  /**
   * Records that a try found the file busy. Returns the pause in milliseconds; `undefined`: try again in the next turn of the
   * event loop.
   */
  failed(): number | undefined {
    if (this.#tries === 0) this.#since = performance.now();
    this.#tries += 1;
    if (this.#tries <= TRIES_AT_ONCE) return undefined;
    return Math.min(MAX_PAUSE_MS, 2 ** (this.#tries - TRIES_AT_ONCE - 1)) * (0.5 + Math.random());
  }

  succeeded(): void {
    this.#tries = 0;
  }

  /**
   * The time that the next try asks for the file without a pause. A busy machine wakes a process seldom, and others that run
   * take the file again and again: a single request at each awakening would find it free too rarely.
   */
  get spinMs(): number {
    if (this.#tries <= TRIES_AT_ONCE) return 0;
    return Math.min(1, (performance.now() - this.#since) / SPIN_GROWTH_MS) * MAX_SPIN_MS;
  }
}
