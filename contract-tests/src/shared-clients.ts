import type { LockBackend } from '@locks/core';
import { delegate } from '@locks/core/conformance';

/** How many clients the backends of a process share, as those of an application would. */
const CLIENTS = 8;

/**
 * Gives the backends of a process their clients in turn. To open one of its own for each would hold up a case: a client of
 * Sentinel or a cluster costs node-redis a tenth of a second of CPU, and one of etcd opens channels to every member.
 */
export class SharedClients<C> {
  readonly #open: () => C;
  readonly #end: (client: C) => unknown;
  readonly #clients: C[] = [];
  /** Those that were open when the connections were cut: they take their time to come back. */
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

  /** All that there will be. */
  openAll(): C[] {
    return Array.from({ length: CLIENTS }, () => this.next());
  }

  /** From now on others; these stay with the backends that have them. */
  cutOff(): void {
    this.#cutOff.push(...this.#clients.splice(0).filter((client) => client !== undefined));
  }

  async end(): Promise<void> {
    this.cutOff();
    // One that could not be opened has told whoever asked for it.
    await Promise.allSettled(this.#cutOff.splice(0).map(async (client) => this.#end(client)));
  }
}

/** In a child process nobody tears down: there what the backend uses ends with it. */
export function closedWith(backend: LockBackend, end: () => Promise<void>): LockBackend {
  return delegate(backend, {
    close: async () => {
      await backend.close();
      await end();
    },
  });
}
