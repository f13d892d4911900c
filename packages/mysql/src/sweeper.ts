import type { Desks } from './desks.ts';
import { clientAliveMs } from './statements.ts';
import type { Store } from './store.ts';

const everyMs = 30_000;
/** Rows that were in use a moment ago are likely to be so again. */
const idleMs = 10_000;
const rowsAtOnce = 500;

/** Deletes rows of resources that nobody holds or waits for. One process at a time does it for all. */
export class Sweeper {
  readonly #store: Store;
  readonly #desks: Desks;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(store: Store, desks: Desks) {
    this.#store = store;
    this.#desks = desks;
  }

  /** There is, or will be, something to sweep: looked at once, later. */
  wake(): void {
    if (this.#timer !== undefined || this.#stopped) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.#desks.forgetUnused();
        // What cannot be swept now is swept later, by whoever comes.
        this.#sweepInTurn().catch(() => undefined);
      },
      everyMs * (1 + Math.random() / 2),
    );
    this.#timer.unref();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #sweepInTurn(): Promise<void> {
    const { rows } = await this.#store.write(this.#store.statements.claimSweep(everyMs / 2), ownLimit());
    // Somebody else has just been here. What was in use then is left for the next time.
    if (rows === 0) return this.wake();
    await this.sweep(idleMs);
    const { statements } = this.#store;
    const left = await this.#store.read(statements.idleRows(0, 1), ownLimit());
    if (statements.snapshot(left).states.size > 0) this.wake();
  }

  /** Gives how many rows went. */
  async sweep(idleForMs: number): Promise<number> {
    const { statements } = this.#store;
    let deleted = 0;
    for (let found = rowsAtOnce; found === rowsAtOnce; ) {
      const cells = await this.#store.read(statements.idleRows(idleForMs, rowsAtOnce), ownLimit());
      const { states, alive } = statements.snapshot(cells);
      found = states.size;
      const rows = [...states].flatMap(([name, state]) => {
        if (state === undefined || state.places.some(({ client }) => alive.has(client))) return [];
        return [{ name, version: state.version, token: state.token }];
      });
      if (rows.length === 0) break;
      // First the floor: a row that is made after these are gone begins above their tokens (docs/spec.md §6.4).
      await this.#store.write(statements.raiseFloor(Math.max(...rows.map(({ token }) => token))), ownLimit());
      const result = await this.#store.write(statements.deleteRows(rows), ownLimit());
      deleted += result.rows;
    }
    await this.#store.write(statements.deleteSilentClients(), ownLimit());
    return deleted;
  }
}

function ownLimit() {
  const now = (): number => performance.now();
  return { now, deadline: now() + clientAliveMs };
}
