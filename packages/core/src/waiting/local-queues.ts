/** Releases in a row of which the last does not wake the next local waiter, because other processes wait too. */
const RELEASES_PER_PAUSE = 16;

/** A waiter's place in the queue of this process. */
export interface LocalTicket {
  /** Whether the queue was empty when the ticket was taken. */
  readonly isFirst: boolean;
  /** Resolves when all earlier tickets have left. */
  readonly turn: Promise<void>;
  /** Called on the first of the queue when a lease of this manager was released; `undefined` while it does not pause. */
  wake: (() => void) | undefined;
  /** Whether a lease was released while `wake` was not set: an attempt in flight at that time may have come too early. */
  missedWake: boolean;
  leave(): void;
}

interface QueuedTicket extends LocalTicket {
  readonly call: () => void;
}

interface LocalQueue {
  readonly tickets: Set<QueuedTicket>;
  releases: number;
}

/**
 * The waiters of one manager, by resource, where the store keeps no queue. Only the first of a queue asks the store, so that
 * the store's load does not grow with their number (docs/spec.md §7.6).
 */
export class LocalQueues {
  readonly #queues = new Map<string, LocalQueue>();

  has(resource: string): boolean {
    return this.#queues.has(resource);
  }

  /** Wakes the first waiter of a resource that this manager released: it need not wait for its next poll. */
  released(resource: string): void {
    const queue = this.#queues.get(resource);
    if (queue === undefined) return;
    queue.releases = (queue.releases + 1) % RELEASES_PER_PAUSE;
    const [first] = queue.tickets;
    if (queue.releases === 0 || first === undefined) return;
    if (first.wake === undefined) first.missedWake = true;
    else first.wake();
  }

  join(resource: string): LocalTicket {
    const queue = this.#queues.get(resource) ?? { tickets: new Set(), releases: 0 };
    this.#queues.set(resource, queue);
    let call: () => void = () => {};
    const turn = new Promise<void>((resolve) => (call = resolve));
    const isFirst = queue.tickets.size === 0;
    const ticket: QueuedTicket = {
      isFirst,
      turn,
      wake: undefined,
      missedWake: false,
      call,
      leave: () => {
        queue.tickets.delete(ticket);
        const [first] = queue.tickets;
        // A waiter that has its turn already is not affected by a second call.
        if (first !== undefined) first.call();
        else if (this.#queues.get(resource) === queue) this.#queues.delete(resource);
      },
    };
    queue.tickets.add(ticket);
    if (isFirst) call();
    return ticket;
  }
}
