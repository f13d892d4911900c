import type { AcquireRequest, LockMode } from '@locks/core';

/** An acquisition that holds a resource. Times are on the store's clock. */
export interface HeldEntry {
  request: AcquireRequest;
  readonly fencingToken: bigint;
  readonly since: number;
  expiresAt: number;
}

/** An acquisition in the queue of a resource. */
export interface QueuedEntry {
  request: AcquireRequest;
  readonly since: number;
  /** Whether somebody listens for the hand-off. */
  wake: ((held: HeldEntry) => void) | undefined;
}

/** Who holds one resource and who waits for it, in every mode. */
export class Resource {
  readonly holders = new Map<string, HeldEntry>();
  /** In the order in which they are served. */
  readonly queue = new Map<string, QueuedEntry>();
  /** When the next hold ends by itself and somebody must notice. */
  expiry: NodeJS.Timeout | undefined;

  get isIdle(): boolean {
    return this.holders.size === 0 && this.queue.size === 0;
  }

  get nextExpiry(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { expiresAt } of this.holders.values()) next = Math.min(next, expiresAt);
    return next;
  }

  /** A mode that lives here and that `mode` contradicts (docs/spec.md §15.7). */
  conflictWith(mode: LockMode): LockMode | undefined {
    for (const { request } of this.#live()) {
      const lives = request.mode;
      if (lives.kind !== 'permit' && mode.kind !== 'permit') return undefined;
      return lives.kind === 'permit' && mode.kind === 'permit' && lives.limit === mode.limit
        ? undefined
        : lives;
    }
    return undefined;
  }

  /** Whether a newcomer gets it: what comes free belongs to the queue, so that none is overtaken. */
  admits(mode: LockMode): boolean {
    return this.queue.size === 0 && this.fits(mode);
  }

  /** The head of the queue, if it fits now. It holds back those behind it (docs/spec.md §15.2). */
  get next(): QueuedEntry | undefined {
    const [head] = this.queue.values();
    return head !== undefined && this.fits(head.request.mode) ? head : undefined;
  }

  /** Whether `mode` may hold beside those who hold now. */
  fits(mode: LockMode): boolean {
    switch (mode.kind) {
      case 'exclusive':
        return this.holders.size === 0;
      case 'shared':
        return [...this.holders.values()].every(({ request }) => request.mode.kind === 'shared');
      case 'permit': {
        let taken = mode.weight;
        for (const { request } of this.holders.values()) {
          // A thief may hold in another mode.
          if (request.mode.kind !== 'permit') return false;
          taken += request.mode.weight;
        }
        return taken <= mode.limit;
      }
      default:
        return mode satisfies never;
    }
  }

  /** Another limit for the permits that live here. */
  resize(limit: number): void {
    for (const entry of this.#live()) {
      const { mode } = entry.request;
      if (mode.kind === 'permit') entry.request = { ...entry.request, mode: { ...mode, limit } };
    }
  }

  *#live(): Generator<HeldEntry | QueuedEntry> {
    yield* this.holders.values();
    yield* this.queue.values();
  }
}
