import type { LockBackend } from '@locks/core/backend';
import { delegate } from '@locks/core/conformance';

/** The number of clients that the backends of a process share, as those of an application would. */
const CLIENTS = 8;

/**
 * Shares clients between the backends of a process, in turn. A client for each backend would delay the cases: a client of
 * Sentinel or a cluster costs node-redis a tenth of a second of CPU, and one of etcd opens channels to every member.
 */
export class SharedClients<C> {
  readonly #open: () => C;
  readonly #end: (client: C) => unknown;
  readonly #clients: C[] = [];
  /** The clients that were open when the connections were cut: they need time to reconnect. */
  readonly #cutOff: C[] = [];
  #turn = 0;

  constructor(open: () => C, end: (client: C) => unknown) {
    this.#open = open;
    this.#end = end;
  }

  next(): C {
    this.#turn += 1;
    return (this.#clients[this.#turn % CLIENTS] ??= this.#open());
  }

  /** Starts all clients at once. */
  openAll(): C[] {
    return Array.from({ length: CLIENTS }, () => this.next());
  }

  /** Gives new clients to the next backends; the present ones stay with their backends. */
  cutOff(): void {
    this.#cutOff.push(...this.#clients.splice(0).filter((client) => client !== undefined));
  }

  async end(): Promise<void> {
    this.cutOff();
    // The failure of a client that could not be opened was reported to its backend.
    await Promise.allSettled(this.#cutOff.splice(0).map(async (client) => this.#end(client)));
  }
}

/** Ends the client together with its backend, for child processes, which have no teardown. */
export function closedWith(backend: LockBackend, end: () => Promise<void>): LockBackend {
  return delegate(backend, {
    close: async () => {
      await backend.close();
      await end();
    },
  });
}
