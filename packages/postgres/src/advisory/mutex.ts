/** Runs asynchronous steps one after the other. */
export class Mutex {
  #busy = false;
  readonly #queue: (() => void)[] = [];

  get busy(): boolean {
    return this.#busy;
  }

  async run<T>(step: () => Promise<T>): Promise<T> {
    if (this.#busy) await new Promise<void>((resolve) => this.#queue.push(resolve));
    this.#busy = true;
    try {
      return await step();
    } finally {
      const next = this.#queue.shift();
      // The next step runs at once, so the mutex stays busy.
      if (next === undefined) this.#busy = false;
      else next();
    }
  }
}
