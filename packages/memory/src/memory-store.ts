import type { AcquireRequest } from '@locks/core';

/** An acquisition that holds a resource. Times are on the store's clock. */
export interface HeldEntry {
  readonly request: AcquireRequest;
  readonly fencingToken: bigint;
  readonly since: number;
  expiresAt: number;
}

/** An acquisition in the queue of a resource. */
export interface QueuedEntry {
  readonly request: AcquireRequest;
  readonly since: number;
  /** Whether somebody listens for the hand-off; nothing is handed to one that is gone. */
  wake: ((held: HeldEntry) => void) | undefined;
}

interface Resource {
  holder: HeldEntry | undefined;
  readonly queue: Map<string, QueuedEntry>;
  expiry: NodeJS.Timeout | undefined;
}

/** A hold that expired and that nobody asked for again is forgotten at most this long after its end. */
const SWEEP_MS = 60_000;

/**
 * What the backends of one process share. A resource is here only while somebody holds it or waits for it; the fencing
 * token is one counter, so that it rises also for a resource that was forgotten.
 */
export class MemoryStore {
  readonly #resources = new Map<string, Resource>();
  #lastToken = 0n;
  #sweeper: NodeJS.Timeout | undefined;

  now(): number {
    return performance.now();
  }

  names(): string[] {
    return [...this.#resources.keys()];
  }

  /** The live holder. */
  holder(name: string): HeldEntry | undefined {
    const resource = this.#resources.get(name);
    return resource === undefined ? undefined : this.#liveHolder(name, resource);
  }

  queued(name: string): QueuedEntry[] {
    return [...(this.#resources.get(name)?.queue.values() ?? [])];
  }

  /** Grants, or queues where asked to, or does nothing. */
  acquire(request: AcquireRequest, enqueue: boolean): HeldEntry | undefined {
    const name = request.resource;
    // Before the resource is looked up: the end of an expired hold may remove it.
    const holder = this.holder(name);
    const resource = this.#resources.get(name);
    if (resource === undefined) {
      const first = this.#held(request);
      this.#resources.set(name, { holder: first, queue: new Map(), expiry: undefined });
      this.#sweepLater();
      return first;
    }
    if (holder?.request.acquisitionId === request.acquisitionId) return holder;
    // Somebody holds it: what comes free goes to the head of the queue in the same step, so that none is overtaken.
    if (enqueue && !resource.queue.has(request.acquisitionId)) {
      resource.queue.set(request.acquisitionId, { request, since: this.now(), wake: undefined });
    }
    this.#watchExpiry(name, resource);
    return undefined;
  }

  /** Listens for the hand-off to a queued id. */
  listen(request: AcquireRequest, wake: (held: HeldEntry) => void): void {
    const entry = this.#resources.get(request.resource)?.queue.get(request.acquisitionId);
    if (entry !== undefined) entry.wake = wake;
  }

  renew(name: string, acquisitionId: string, ttlMs: number): 'held' | 'absent' | 'other' {
    const resource = this.#resources.get(name);
    const holder = resource && this.#liveHolder(name, resource);
    if (resource === undefined || holder === undefined) return 'absent';
    if (holder.request.acquisitionId !== acquisitionId) return 'other';
    holder.expiresAt = this.now() + ttlMs;
    this.#watchExpiry(name, resource);
    return 'held';
  }

  /** Only the holder's own id frees the resource; the next in line gets it in the same step. */
  release(name: string, acquisitionId: string): HeldEntry | undefined {
    const resource = this.#resources.get(name);
    const holder = resource && this.#liveHolder(name, resource);
    if (resource === undefined || holder?.request.acquisitionId !== acquisitionId) return undefined;
    this.#free(name, resource);
    return holder;
  }

  /** Afterwards the id neither holds nor waits. */
  forget(name: string, acquisitionId: string): void {
    const resource = this.#resources.get(name);
    if (resource === undefined) return;
    resource.queue.delete(acquisitionId);
    if (this.release(name, acquisitionId) === undefined) this.#tidy(name, resource);
  }

  #held(request: AcquireRequest): HeldEntry {
    this.#lastToken += 1n;
    const since = this.now();
    return { request, fencingToken: this.#lastToken, since, expiresAt: since + request.ttlMs };
  }

  #liveHolder(name: string, resource: Resource): HeldEntry | undefined {
    if (resource.holder !== undefined && resource.holder.expiresAt <= this.now()) this.#free(name, resource);
    return resource.holder;
  }

  #free(name: string, resource: Resource): void {
    clearTimeout(resource.expiry);
    resource.expiry = undefined;
    resource.holder = undefined;
    const [next] = resource.queue.values();
    if (next !== undefined) {
      resource.queue.delete(next.request.acquisitionId);
      resource.holder = this.#held(next.request);
      this.#watchExpiry(name, resource);
      next.wake?.(resource.holder);
    }
    this.#tidy(name, resource);
  }

  /** While somebody waits, the end of an abandoned hold must be noticed by itself. */
  #watchExpiry(name: string, resource: Resource): void {
    const { holder } = resource;
    if (holder === undefined || resource.queue.size === 0) return;
    clearTimeout(resource.expiry);
    const delay = Math.min(Math.ceil(holder.expiresAt - this.now()) + 1, 2 ** 31 - 1);
    resource.expiry = setTimeout(() => {
      resource.expiry = undefined;
      if (this.#liveHolder(name, resource) === holder) this.#watchExpiry(name, resource);
    }, delay);
    resource.expiry.unref();
  }

  #sweepLater(): void {
    if (this.#sweeper !== undefined) return;
    this.#sweeper = setTimeout(() => {
      this.#sweeper = undefined;
      for (const [name, resource] of this.#resources) this.#liveHolder(name, resource);
      if (this.#resources.size > 0) this.#sweepLater();
    }, SWEEP_MS);
    this.#sweeper.unref();
  }

  #tidy(name: string, resource: Resource): void {
    if (resource.holder !== undefined || resource.queue.size > 0) return;
    clearTimeout(resource.expiry);
    this.#resources.delete(name);
  }
}
