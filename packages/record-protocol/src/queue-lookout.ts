import type { Heartbeats } from './heartbeats.ts';
import type { LockRow } from './lock-row.ts';
import type { LookScope } from './lock-table.ts';

/** The number of clients ahead whose heartbeats are followed, and up to which place in the queue a process follows them. */
const NEAR = 3;
/** A queue that moved within this part of the time after which a client counts as dead has a first waiter that lives. */
const STUCK_PART = 1 / 8;

/** Whose heartbeats matter. `near`: those of the few ahead of a process whose turn comes soon, in a queue that does not move. */
export type LookoutScope = 'near' | LookScope;

interface Queue {
  readonly row: LockRow;
  readonly head: string | undefined;
  /** Since when this process has seen the same waiter at the head, on `performance.now()`. */
  readonly since: number;
}

/**
 * The queues that this process reads, and whose heartbeats it needs of them: those of the few clients that could be next. A crowd whose
 * every member followed all others would send a number of requests that grows with the square of its size.
 */
export class QueueLookout {
  readonly #heartbeats: Heartbeats;
  readonly #stuckMs: number;
  /** The queues in which others wait, by their names, as last read. */
  readonly #queues = new Map<string, Queue>();
  /** The client of this process, once it has sent a heartbeat. It lives, and nobody needs to tell it so. */
  client = '';

  constructor(heartbeats: Heartbeats, waiterTtlMs: number) {
    this.#heartbeats = heartbeats;
    this.#stuckMs = waiterTtlMs * STUCK_PART;
  }

  /** Records what was read of a name; `undefined`: it has no record. */
  note(name: string, row: LockRow | undefined): void {
    if (row?.waiters.some(({ client }) => client !== this.client) !== true) {
      this.#queues.delete(name);
      return;
    }
    const before = this.#queues.get(name);
    const head = row.waiters[0]?.id;
    const since = before?.head === head ? (before?.since as number) : performance.now();
    this.#queues.set(name, { row, head, since });
  }

  /** The clients whose heartbeats are to be read now. */
  dueOf(names: readonly string[], scope: LookoutScope): readonly string[] {
    const due = new Set<string>();
    for (const name of names) {
      const queue = this.#queues.get(name);
      if (queue === undefined) continue;
      for (const client of this.#clientsOf(queue, scope))
        if (client !== this.client && this.#heartbeats.isDue(client)) due.add(client);
    }
    return [...due];
  }

  #clientsOf({ row, since }: Queue, scope: LookoutScope): readonly string[] {
    if (scope === 'near' && performance.now() - since < this.#stuckMs) return [];
    const clients = [...new Set(row.waiters.map(({ client }) => client))];
    if (scope === 'all') return clients;
    if (scope === 'dead') return clients.filter((client) => this.#heartbeats.isSilent(client));
    const place = clients.indexOf(this.client);
    if (scope === 'near' && (place === -1 || this.#livingIn(clients.slice(0, place)) > NEAR)) return [];
    return this.#firstOf(place === -1 ? clients : clients.slice(0, place));
  }

  /**
   * The first few clients that are not known to be silent, and the silent ones before them. The more of them are silent, the more of those
   * behind them are looked at together: a host that has died had many.
   */
  #firstOf(ahead: readonly string[]): readonly string[] {
    let silent = 0;
    let others = 0;
    const end = ahead.findIndex((client) => {
      if (this.#heartbeats.isSilent(client)) silent += 1;
      else others += 1;
      return others > Math.max(NEAR, 2 * silent);
    });
    return end === -1 ? ahead : ahead.slice(0, end);
  }

  #livingIn(ahead: readonly string[]): number {
    return ahead.filter((client) => !this.#heartbeats.isSilent(client)).length;
  }
}
