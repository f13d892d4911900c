import type { ResourceQueue } from './resource-queue.ts';

/** The pause between two looks: the first, and the longest when look after look finds nothing. */
const FIRST_MS = 100;
const LONGEST_MS = 250;

/**
 * Looks after all of a backend that wait without a connection to stand in the queue with: one timer, and all locks in
 * one statement, however many there are (see {@link LockSteps}).
 */
export class ParkedPoll {
  readonly #queues: () => Iterable<ResourceQueue>;
  #timer: NodeJS.Timeout | undefined;
  #pauseMs = FIRST_MS;

  constructor(queues: () => Iterable<ResourceQueue>) {
    this.#queues = queues;
  }

  /** Somebody waits so. */
  start(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => this.#look(), this.#pauseMs);
    this.#timer.unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    this.#timer = undefined;
    this.#pauseMs = Math.min(this.#pauseMs * 1.25, LONGEST_MS);
    let parked = false;
    // In one go, so that their statements become one; not waited for, so that a slow one holds up no other.
    for (const queue of this.#queues()) {
      if (!queue.isParked) continue;
      parked = true;
      void queue.lookAgain().then((served) => {
        if (served) this.#pauseMs = FIRST_MS;
      });
    }
    if (parked) this.start();
    else this.#pauseMs = FIRST_MS;
  }
}
