/** A mode as `acquire` takes it: limit 0 for a lock, weight `undefined` for exclusive, 0 for a reader. */
export interface ModelMode {
  readonly limit: number;
  readonly weight: number | undefined;
}

export interface ModelEntry {
  readonly id: string;
  readonly mode: ModelMode;
}

/** A model of one resource: docs/spec.md §15 in as few lines as possible. */
export class Model {
  holders: ModelEntry[] = [];
  queue: ModelEntry[] = [];
  /** The limit of the permits that hold or wait. */
  limit = 0;

  take(entry: ModelEntry, enqueue: boolean): 'granted' | 'contended' | 'waiting' | 'conflict' {
    const { id, mode } = entry;
    if (this.holds(id)) return 'granted';
    if (this.waits(id)) return 'waiting';
    if (this.#lives && mode.limit !== this.limit) return 'conflict';
    if (!this.#lives) this.limit = mode.limit;
    if (this.queue.length === 0 && this.#fits(mode)) {
      this.holders.push(entry);
      return 'granted';
    }
    if (!enqueue) return 'contended';
    this.queue.push(entry);
    return 'waiting';
  }

  many(entries: readonly ModelEntry[]): boolean {
    const [entry] = entries as [ModelEntry];
    if (this.holds(entry.id)) return true;
    return !this.waits(entry.id) && this.take(entry, false) === 'granted';
  }

  steal(entry: ModelEntry): void {
    if (this.holds(entry.id)) return;
    this.holders = [entry];
    this.limit = entry.mode.limit;
    this.serve();
  }

  /** A release, an abandon, the end of a lease. */
  end(id: string): void {
    this.holders = this.holders.filter((holder) => holder.id !== id);
    this.queue = this.queue.filter((waiter) => waiter.id !== id);
    this.serve();
  }

  downgrade(id: string): void {
    this.holders = this.holders.map((holder) =>
      holder.id === id ? { id, mode: { limit: 0, weight: 0 } } : holder,
    );
    this.serve();
  }

  resize(limit: number): 'set' | 'conflict' {
    if (!this.#lives) return 'set';
    if (this.limit === 0) return 'conflict';
    this.limit = limit;
    this.serve();
    return 'set';
  }

  serve(): void {
    while (this.queue[0] !== undefined && this.#fits(this.queue[0].mode)) {
      this.holders.push(this.queue.shift() as ModelEntry);
    }
  }

  holds(id: string): boolean {
    return this.holders.some((holder) => holder.id === id);
  }

  waits(id: string): boolean {
    return this.queue.some((waiter) => waiter.id === id);
  }

  get used(): number {
    return this.holders.reduce((sum, { mode }) => sum + (mode.weight ?? 0), 0);
  }

  get exclusive(): boolean {
    return this.holders.some(({ mode }) => mode.weight === undefined);
  }

  get #lives(): boolean {
    return this.holders.length + this.queue.length > 0;
  }

  #fits({ weight }: ModelMode): boolean {
    if (weight === undefined) return this.holders.length === 0;
    return !this.exclusive && this.used + weight <= this.limit;
  }
}
