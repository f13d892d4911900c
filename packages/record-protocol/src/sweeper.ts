import type { LockTable } from './lock-table.ts';
import type { RowsInUse } from './rows-in-use.ts';

const EVERY_MS = 30_000;

/** Lets the process forget rows that were not used for long, and the table delete rows of which nobody holds or waits. */
export class Sweeper {
  readonly #table: LockTable;
  readonly #rows: RowsInUse;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(table: LockTable, rows: RowsInUse) {
    this.#table = table;
    this.#rows = rows;
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
    const left = this.#rows.forgetUnused();
    // Rows that cannot be swept now are swept later, by this process or another.
    const isAnyLeft = await (this.#table.sweep?.() ?? Promise.resolve(left > 0)).catch(() => false);
    if (isAnyLeft) this.wake();
  }
}
