/**
 * A run whose outcome many callers wait for, as a flight of Go's `singleflight`. Each may leave by its signal; when the last has left,
 * the run is aborted.
 */
export class SharedRun<T> {
  readonly #controller = new AbortController();
  readonly #outcome: Promise<T>;
  readonly #over: () => void;
  #callers = 0;

  /**
   * @param start - called at once, with a signal that aborts when the last caller has left
   * @param over - called when nobody can join any more: the run has ended, or the last caller has left
   */
  constructor(start: (abandoned: AbortSignal) => Promise<T>, over: () => void) {
    this.#over = over;
    this.#outcome = start(this.#controller.signal).finally(over);
  }

  join(signal: AbortSignal | undefined): Promise<T> {
    this.#callers += 1;
    if (signal === undefined) return this.#outcome;
    return new Promise<T>((resolve, reject) => {
      const leave = (): void => {
        reject(signal.reason as Error);
        this.#callers -= 1;
        if (this.#callers > 0) return;
        this.#over();
        this.#controller.abort(signal.reason);
      };
      signal.addEventListener('abort', leave, { once: true });
      const stay = (): void => signal.removeEventListener('abort', leave);
      this.#outcome.then(resolve, reject).finally(stay);
    });
  }
}
