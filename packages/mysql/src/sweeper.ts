import { CLIENT_ALIVE_MS } from './mysql-statements.ts';
import { type MysqlStore, ownLimit, type TimeLimit } from './mysql-store.ts';
import type { RowWriters } from './row-writers.ts';

const EVERY_MS = 30_000;
/** The time for which a row must be idle: rows that were in use a moment ago are likely to be used again. */
const IDLE_MS = 10_000;
const ROWS_AT_ONCE = 500;

/** Deletes rows of resources that nobody holds or waits for. One process at a time does it for all. */
export class Sweeper {
  readonly #store: MysqlStore;
  readonly #writers: RowWriters;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(store: MysqlStore, writers: RowWriters) {
    this.#store = store;
    this.#writers = writers;
  }

  /** Schedules one sweep: there are, or will be, rows to delete. */
  wake(): void {
    if (this.#timer !== undefined || this.#stopped) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.#writers.forgetUnused();
        // Rows that cannot be swept now are swept later, by this process or another.
        this.#sweepInTurn().catch(() => undefined);
      },
      EVERY_MS * (1 + Math.random() / 2),
    );
    this.#timer.unref();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #sweepInTurn(): Promise<void> {
    const { rows } = await this.#store.write(this.#store.statements.claimSweep(EVERY_MS / 2), sweepLimit());
    // Another process has just swept. Rows that were in use then are left for the next time.
    if (rows === 0) return this.wake();
    await this.sweep(IDLE_MS);
    const { statements } = this.#store;
    const left = await this.#store.read(statements.idleRows(0, 1), sweepLimit());
    if (statements.snapshot(left).rows.size > 0) this.wake();
  }

  /** Deletes idle rows; returns how many. */
  async sweep(idleForMs: number): Promise<number> {
    const { statements } = this.#store;
    let deleted = 0;
    for (let found = ROWS_AT_ONCE; found === ROWS_AT_ONCE; ) {
      const cells = await this.#store.read(statements.idleRows(idleForMs, ROWS_AT_ONCE), sweepLimit());
      const { rows: idle, alive } = statements.snapshot(cells);
      found = idle.size;
      const rows = [...idle].flatMap(([name, row]) => {
        if (row === undefined || row.waiters.some(({ client }) => alive.has(client))) return [];
        return [{ name, version: row.version, token: row.token }];
      });
      if (rows.length === 0) break;
      // The floor is raised first: a row that is made after these are gone begins above their tokens (docs/spec.md §6.4).
      await this.#store.write(
        statements.raiseFloor(Math.max(...rows.map(({ token }) => token))),
        sweepLimit(),
      );
      const result = await this.#store.write(statements.deleteRows(rows), sweepLimit());
      deleted += result.rows;
    }
    await this.#store.write(statements.deleteSilentClients(), sweepLimit());
    return deleted;
  }
}

function sweepLimit(): TimeLimit {
  return ownLimit(CLIENT_ALIVE_MS);
}
