/** Steps that await the server, one after the other. */
export class Mutex {
  #last: Promise<unknown> | undefined;

  get busy(): boolean {
    return this.#last !== undefined;
  }

  async run<T>(step: () => Promise<T>): Promise<T> {
    const before = this.#last;
    const work = before === undefined ? step() : before.then(step);
    const settled = work.then(ignore, ignore);
    this.#last = settled;
    try {
      return await work;
    } finally {
      if (this.#last === settled) this.#last = undefined;
    }
  }
}

function ignore(): void {
  // Whoever asked is told.
}
