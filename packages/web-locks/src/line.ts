import type { LockRequest } from './lock-request.ts';

/** What a request has to wait for before it is sent. */
export interface Place {
  /** All earlier requests of the line are in the store's queue, or beyond. */
  readonly processed: Promise<unknown>;
  /** All earlier requests of the line wait no more. */
  readonly advanced: Promise<unknown>;
}

/**
 * The requests of one client for one name, in the order in which they were made. A store may be asked over several
 * connections: what is sent later could arrive sooner, so each request waits until the one before is in the queue.
 */
export class Line {
  readonly #live = new Set<LockRequest>();
  /** Releases and withdrawals that the store has not answered. */
  readonly #leaving = new Set<Promise<unknown>>();
  #processed: Promise<unknown> = Promise.resolve();
  #advanced: Promise<unknown> = Promise.resolve();

  get isEmpty(): boolean {
    return this.#live.size === 0 && this.#leaving.size === 0;
  }

  /** @param queues - whether the store keeps those who wait in order; if not, only the first of a line asks it */
  join(request: LockRequest, queues: boolean): Place {
    const place = { processed: this.#processed, advanced: this.#advanced };
    this.#live.add(request);
    this.#processed = place.processed.then(() => request.processed.opened);
    if (queues) return place;
    this.#advanced = place.advanced.then(() => request.advanced.opened);
    const { steal, ifAvailable } = request.wanted;
    // It stands in this line behind one that waits: for the client that is the queue.
    if (!steal && !ifAvailable)
      void place.processed.then(() => this.hasWaitingBefore(request) && request.processed.open());
    return place;
  }

  leave(request: LockRequest): void {
    this.#live.delete(request);
  }

  hasWaitingBefore(request: LockRequest): boolean {
    return this.#before(request).some(({ isPending }) => isPending);
  }

  /** @param done - settles when the store has answered */
  expectLeave(done: Promise<unknown>, emptied: () => void): void {
    const settled = done
      .catch(() => {})
      .finally(() => {
        this.#leaving.delete(settled);
        emptied();
      });
    this.#leaving.add(settled);
  }

  /** All that was over before the request was made is out of the store: aborted requests, robbed ones, released locks. */
  async allLeftBefore(request: LockRequest): Promise<void> {
    for (;;) {
      // Later ones may wait for this very request.
      const over = this.#before(request).filter(({ isOver }) => isOver);
      if (over.length + this.#leaving.size === 0) return;
      await Promise.all([...over.map(({ ended }) => ended.opened), ...this.#leaving]);
    }
  }

  #before(request: LockRequest): LockRequest[] {
    const live = [...this.#live];
    return live.slice(0, live.indexOf(request));
  }
}
