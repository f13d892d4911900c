import type { GlideConnection } from './clients.ts';

/** The client's default for `inflightRequestsLimit`. */
const DEFAULT_LIMIT = 1000;

/**
 * Keeps the commands in flight below the limit of the client, which refuses what is beyond it: half of the limit is left to the
 * application.
 */
export class RequestWindow {
  readonly #size: number;
  #inFlight = 0;
  readonly #queued: (() => void)[] = [];

  constructor({ config: { inflightRequestsLimit = DEFAULT_LIMIT } }: GlideConnection) {
    this.#size = Math.max(1, Math.floor(inflightRequestsLimit / 2));
  }

  /** Sends now, or when another command was answered. */
  async run(send: () => Promise<unknown>): Promise<unknown> {
    if (this.#inFlight >= this.#size) await new Promise<void>((resolve) => this.#queued.push(resolve));
    else this.#inFlight += 1;
    try {
      return await send();
    } finally {
      // The next command takes the place of this one.
      const next = this.#queued.shift();
      if (next === undefined) this.#inFlight -= 1;
      else next();
    }
  }
}
