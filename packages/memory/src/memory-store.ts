import type { AcquireRequest, LockMode } from '@locks/core';
import { type HeldEntry, type QueuedEntry, Resource } from './resource.ts';

/** A hold that expired and that nobody asked for again is forgotten at most this long after its end. */
const SWEEP_MS = 60_000;
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** What came of asking for a resource. */
export type Acquired =
  | { readonly status: 'granted'; readonly held: HeldEntry }
  | { readonly status: 'contended' }
  | { readonly status: 'conflict'; readonly with: LockMode };

const CONTENDED = { status: 'contended' } as const;

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

  /** The live holders. */
  holders(name: string): HeldEntry[] {
    return [...(this.#live(name)?.holders.values() ?? [])];
  }

  queued(name: string): QueuedEntry[] {
    return [...(this.#resources.get(name)?.queue.values() ?? [])];
  }

  /** Grants, or queues where asked to, or does nothing. */
  acquire(request: AcquireRequest, enqueue: boolean): Acquired {
    const { resource: name, acquisitionId, mode } = request;
    // Before the resource is looked up again: the end of an expired hold may remove it.
    const resource = this.#live(name) ?? this.#create(name);
    const held = resource.holders.get(acquisitionId);
    if (held !== undefined) return { status: 'granted', held };
    if (request.steal === true) return { status: 'granted', held: this.#steal(name, resource, request) };
    const waits = resource.queue.has(acquisitionId);
    const conflict = waits ? undefined : resource.conflictWith(mode);
    if (conflict !== undefined) return { status: 'conflict', with: conflict };
    if (resource.admits(mode)) {
      return { status: 'granted', held: this.#grant(name, resource, request) };
    }
    if (enqueue && !waits) {
      resource.queue.set(acquisitionId, { request, since: this.now(), wake: undefined });
    }
    this.#watchExpiry(name, resource);
    this.#tidy(name, resource);
    return CONTENDED;
  }

  /** Every one of them, or none. */
  acquireMany(requests: readonly AcquireRequest[]): HeldEntry[] | undefined {
    const free = requests.every(({ resource: name, acquisitionId, mode }) => {
      const resource = this.#live(name);
      if (resource === undefined || resource.holders.has(acquisitionId)) return true;
      return resource.conflictWith(mode) === undefined && resource.admits(mode);
    });
    if (!free) return undefined;
    return requests.flatMap((request) => {
      const acquired = this.acquire(request, false);
      return acquired.status === 'granted' ? [acquired.held] : [];
    });
  }

  /** Listens for the hand-off to a queued id. */
  listen(request: AcquireRequest, wake: (held: HeldEntry) => void): void {
    const entry = this.#resources.get(request.resource)?.queue.get(request.acquisitionId);
    if (entry !== undefined) entry.wake = wake;
  }

  renew(name: string, acquisitionId: string, ttlMs: number): 'held' | 'absent' | 'other' {
    const resource = this.#live(name);
    const held = resource?.holders.get(acquisitionId);
    if (resource === undefined || held === undefined) return this.#gone(resource);
    held.expiresAt = this.now() + ttlMs;
    this.#watchExpiry(name, resource);
    return 'held';
  }

  /** From exclusive to shared without a moment in which it is free. */
  downgrade(name: string, acquisitionId: string): 'held' | 'absent' | 'other' {
    const resource = this.#live(name);
    const held = resource?.holders.get(acquisitionId);
    if (resource === undefined || held === undefined) return this.#gone(resource);
    held.request = { ...held.request, mode: { kind: 'shared' } };
    this.#serve(name, resource);
    return 'held';
  }

  /** Another limit for the permits that live; gives the mode that it conflicts with. */
  resize(name: string, limit: number): LockMode | undefined {
    const resource = this.#live(name);
    const [held] = [...(resource?.holders.values() ?? []), ...(resource?.queue.values() ?? [])];
    if (resource === undefined || held === undefined) return undefined;
    if (held.request.mode.kind !== 'permit') return held.request.mode;
    resource.resize(limit);
    this.#serve(name, resource);
    return undefined;
  }

  /** Only the holder's own id frees its hold; those in line who fit now get theirs in the same step. */
  release(name: string, acquisitionId: string): HeldEntry | undefined {
    const resource = this.#live(name);
    const held = resource?.holders.get(acquisitionId);
    if (resource === undefined || held === undefined) return undefined;
    resource.holders.delete(acquisitionId);
    this.#serve(name, resource);
    return held;
  }

  /** Afterwards the id neither holds nor waits. */
  forget(name: string, acquisitionId: string): void {
    const resource = this.#live(name);
    if (resource === undefined) return;
    resource.queue.delete(acquisitionId);
    resource.holders.delete(acquisitionId);
    // One that could not be served held back those behind it.
    this.#serve(name, resource);
  }

  #create(name: string): Resource {
    const resource = new Resource();
    this.#resources.set(name, resource);
    this.#sweepLater();
    return resource;
  }

  /** The resource without the holds that are over. */
  #live(name: string): Resource | undefined {
    const resource = this.#resources.get(name);
    if (resource === undefined) return undefined;
    const now = this.now();
    let ended = false;
    for (const [id, { expiresAt }] of resource.holders) {
      if (expiresAt <= now) ended = resource.holders.delete(id);
    }
    if (ended) this.#serve(name, resource);
    return this.#resources.get(name);
  }

  #gone(resource: Resource | undefined): 'absent' | 'other' {
    return resource === undefined || resource.holders.size === 0 ? 'absent' : 'other';
  }

  #steal(name: string, resource: Resource, request: AcquireRequest): HeldEntry {
    resource.holders.clear();
    resource.queue.delete(request.acquisitionId);
    return this.#grant(name, resource, request);
  }

  #grant(name: string, resource: Resource, request: AcquireRequest): HeldEntry {
    this.#lastToken += 1n;
    const since = this.now();
    const held = { request, fencingToken: this.#lastToken, since, expiresAt: since + request.ttlMs };
    resource.holders.set(request.acquisitionId, held);
    this.#watchExpiry(name, resource);
    return held;
  }

  /** Grants to the head of the queue, and to its neighbours, while they fit (docs/spec.md §15.2). */
  #serve(name: string, resource: Resource): void {
    for (let { next } = resource; next !== undefined; { next } = resource) {
      const { request, wake } = next;
      resource.queue.delete(request.acquisitionId);
      const held = this.#grant(name, resource, request);
      wake?.(held);
    }
    this.#watchExpiry(name, resource);
    this.#tidy(name, resource);
  }

  /** While somebody waits, the end of an abandoned hold must be noticed by itself. */
  #watchExpiry(name: string, resource: Resource): void {
    clearTimeout(resource.expiry);
    resource.expiry = undefined;
    if (resource.holders.size === 0 || resource.queue.size === 0) return;
    const delay = Math.min(Math.ceil(resource.nextExpiry - this.now()) + 1, LONGEST_TIMER_MS);
    resource.expiry = setTimeout(() => {
      resource.expiry = undefined;
      if (this.#live(name) === resource) this.#watchExpiry(name, resource);
    }, delay);
    resource.expiry.unref();
  }

  #sweepLater(): void {
    if (this.#sweeper !== undefined) return;
    this.#sweeper = setTimeout(() => {
      this.#sweeper = undefined;
      for (const name of this.#resources.keys()) this.#live(name);
      if (this.#resources.size > 0) this.#sweepLater();
    }, SWEEP_MS);
    this.#sweeper.unref();
  }

  #tidy(name: string, resource: Resource): void {
    if (!resource.isIdle) return;
    clearTimeout(resource.expiry);
    this.#resources.delete(name);
  }
}
