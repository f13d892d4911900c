import type { RecordTable } from './record-table.ts';
import type { RowWriters } from './row-writers.ts';

const EVERY_MS = 30_000;

/** Lets the process forget rows that were not used for long, and the table delete rows of which nobody holds or waits. */
export class Sweeper {
  readonly #table: RecordTable;
  readonly #writers: RowWriters;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(table: RecordTable, writers: RowWriters) {
    this.#table = table;
    this.#writers = writers;
  }

  /** Schedules one sweep: there are, or will be, rows to forget. */
  wake(): void {
    if (this.#timer !== undefined || this.#stopped) return;
    this.#timer = setTimeout(() => void this.#sweep(), EVERY_MS * (1 + Math.random() / 2));
    this.#timer.unref();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #sweep(): Promise<void> {
    this.#timer = undefined;
    const left = this.#writers.forgetUnused();
    // Rows that cannot be swept now are swept later, by this process or another.
    const isAnyLeft = await (this.#table.sweep?.() ?? Promise.resolve(left > 0)).catch(() => false);
    if (isAnyLeft) this.wake();
  }
}
