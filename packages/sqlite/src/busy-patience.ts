/** Others hold the file for less than a millisecond as a rule: so often it is tried at once. */
const triesAtOnce = 2;
const longestPauseMs = 8;
/** How long the event loop may stand still for one try. */
const longestPressMs = 1;
/** A try grows to its full length in so many milliseconds of waiting. */
const pressGrowthMs = 200;

/** How one backend object waits while other processes have the file: the longer it has waited, the harder it tries. */
export class BusyPatience {
  #tries = 0;
  #since = 0;

  get isWaiting(): boolean {
    return this.#tries > 0;
  }

  /** Not that time: `undefined` to try again in the next turn of the event loop, or a pause in milliseconds. */
  failed(): number | undefined {
    if (this.#tries === 0) this.#since = performance.now();
    this.#tries += 1;
    if (this.#tries <= triesAtOnce) return undefined;
    return Math.min(longestPauseMs, 2 ** (this.#tries - triesAtOnce - 1)) * (0.5 + Math.random());
  }

  succeeded(): void {
    this.#tries = 0;
  }

  /**
   * How long the next try may knock without a pause. A busy machine wakes a process seldom, and those that run take the
   * file again and again: one short knock at each awakening would find it free too rarely.
   */
  get pressMs(): number {
    if (this.#tries <= triesAtOnce) return 0;
    return Math.min(1, (performance.now() - this.#since) / pressGrowthMs) * longestPressMs;
  }
}
