import type { ResourceQueue } from './resource-queue.ts';

/** The pause between two rounds: the first, and the longest after many rounds without a grant. */
const FIRST_MS = 100;
const LONGEST_MS = 250;

/**
 * Tries the locks of all groups of a backend that have no session to wait on: with one timer, and with one statement for
 * all locks (see {@link LockSteps}).
 */
export class ParkedPoll {
  readonly #queues: () => Iterable<ResourceQueue>;
  #timer: NodeJS.Timeout | undefined;
  #pauseMs = FIRST_MS;

  constructor(queues: () => Iterable<ResourceQueue>) {
    this.#queues = queues;
  }

  /** Called when a group has no session to wait on. */
  start(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => this.#tryAll(), this.#pauseMs);
    this.#timer.unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #tryAll(): void {
    this.#timer = undefined;
    this.#pauseMs = Math.min(this.#pauseMs * 1.25, LONGEST_MS);
    let parked = false;
    // The tries are made in one iteration of the event loop, so that all go into one statement. They are not awaited: a slow queue
    // delays no other.
    for (const queue of this.#queues()) {
      if (!queue.isParked) continue;
      parked = true;
      void queue.tryParked().then((served) => {
        if (served) this.#pauseMs = FIRST_MS;
      });
    }
    if (parked) this.start();
    else this.#pauseMs = FIRST_MS;
  }
}
