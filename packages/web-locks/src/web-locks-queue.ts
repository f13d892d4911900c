import type { LockRequest } from './lock-request.ts';

/** The conditions that a request waits for before it is sent, or before its callback is called. */
export interface Predecessors {
  /** Resolves when all earlier requests of the queue stand in the store's queue, or were answered. */
  readonly processed: Promise<unknown>;
  /** Resolves when no earlier request of the queue waits any more. */
  readonly dequeued: Promise<unknown>;
  /** Resolves when the callbacks of all earlier readers of the queue were called, or never will be. */
  readonly readersNotified: Promise<unknown>;
}

/** The requests of one client for one name, in the order in which they were made. */
export class WebLocksQueue {
  readonly #live = new Set<LockRequest>();
  #processed: Promise<unknown> = Promise.resolve();
  #dequeued: Promise<unknown> = Promise.resolve();
  #readersNotified: Promise<unknown> = Promise.resolve();

  get isEmpty(): boolean {
    return this.#live.size === 0;
  }

  join(request: LockRequest): Predecessors {
    const predecessors = {
      processed: this.#processed,
      dequeued: this.#dequeued,
      readersNotified: this.#readersNotified,
    };
    this.#live.add(request);
    this.#processed = predecessors.processed.then(() => request.processed.promise);
    this.#dequeued = predecessors.dequeued.then(() => request.dequeued.promise);
    if (isReader(request))
      this.#readersNotified = predecessors.readersNotified.then(() => request.notified.promise);
    return predecessors;
  }

  leave(request: LockRequest): void {
    this.#live.delete(request);
  }

  /** Whether an earlier request waits. An aborted request waits until its withdrawal has been sent. */
  isBehindWaiting(request: LockRequest): boolean {
    return this.#waitsBefore(request, () => true);
  }

  /** Whether an earlier request waits that cannot hold the lock together with this one. */
  isBehindConflict(request: LockRequest): boolean {
    return this.#waitsBefore(request, (earlier) => !isReader(earlier) || !isReader(request));
  }

  #waitsBefore(request: LockRequest, matches: (earlier: LockRequest) => boolean): boolean {
    for (const earlier of this.#live) {
      if (earlier === request) return false;
      if (!earlier.dequeued.isResolved && matches(earlier)) return true;
    }
    return false;
  }
}

function isReader({ wanted }: LockRequest): boolean {
  return wanted.mode === 'shared';
}
