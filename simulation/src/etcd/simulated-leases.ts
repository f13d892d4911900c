import type { ScheduledEvent } from '../kernel/event-queue.ts';
import type { World } from '../kernel/world.ts';

/** A leader looks for leases that have ended so often, in milliseconds. */
const LOOKS_EVERY_MS = 500;
/** Identifiers have 63 bits: no double holds them. */
const FIRST_ID = 7_587_000_000_000_000_001n;

interface Lease {
  readonly id: string;
  readonly ttlSeconds: number;
  /** True time; the lease and its keys are there until the leader has looked. */
  endsAt: number;
  readonly keys: Set<string>;
  look: ScheduledEvent | undefined;
  /** Called when the lease is gone. */
  readonly waiting: (() => void)[];
}

export interface LeaseOptions {
  /** How much faster than true time the server's clock runs. */
  readonly drift: number;
  /** Servers raise shorter leases to one and a half election timeouts. */
  readonly shortestSeconds: number;
  /** True time before which the server does nothing. */
  readonly idleUntil: () => number;
  /** The lease ends: deletes its keys. */
  readonly ended: (keys: readonly string[]) => void;
}

/** What an answer to a keep-alive says, in seconds; 0: there is no such lease. */
export type KeptAlive = (ttlSeconds: number) => void;

/** The leases of a server. */
export class SimulatedLeases {
  readonly #world: World;
  readonly #options: LeaseOptions;
  readonly #leases = new Map<string, Lease>();
  #granted = 0n;

  constructor(world: World, options: LeaseOptions) {
    this.#world = world;
    this.#options = options;
  }

  has(id: string): boolean {
    return this.#leases.has(id);
  }

  attach(key: string, from: string, to: string): void {
    this.#leases.get(from)?.keys.delete(key);
    this.#leases.get(to)?.keys.add(key);
  }

  grant(wantedSeconds: number): { readonly id: string; readonly ttlSeconds: number } {
    const id = String(FIRST_ID + this.#granted);
    this.#granted += 1n;
    const ttlSeconds = Math.max(wantedSeconds, this.#options.shortestSeconds);
    const lease: Lease = { id, ttlSeconds, endsAt: 0, keys: new Set(), look: undefined, waiting: [] };
    this.#leases.set(id, lease);
    this.#renew(lease);
    return { id, ttlSeconds };
  }

  /** Ends a lease, and says whether there was one. */
  revoke(id: string): boolean {
    const lease = this.#leases.get(id);
    if (lease === undefined) return false;
    this.#end(lease);
    return true;
  }

  /** Whole seconds; `undefined`: there is no such lease. */
  timeToLive(id: string): { readonly left: number; readonly granted: number } | undefined {
    const lease = this.#leases.get(id);
    if (lease === undefined || this.#hasEnded(lease)) return undefined;
    const { drift } = this.#options;
    return {
      left: Math.trunc(((lease.endsAt - this.#world.now) * (1 + drift)) / 1_000),
      granted: lease.ttlSeconds,
    };
  }

  /** Renews a lease. One that has ended is not renewed: the answer comes when the leader has looked. */
  keepAlive(id: string, answer: KeptAlive): void {
    const lease = this.#leases.get(id);
    if (lease === undefined) return answer(0);
    if (this.#hasEnded(lease)) return void lease.waiting.push(() => answer(0));
    this.#renew(lease);
    answer(lease.ttlSeconds);
  }

  /** A new leader gives each lease its whole ttl again. */
  renewAll(): void {
    for (const lease of this.#leases.values()) this.#renew(lease);
  }

  /** What a leader remembers which does not know that it was replaced: lease by lease, the ttl. */
  remembered(): ReadonlyMap<string, number> {
    return new Map([...this.#leases].map(([id, { ttlSeconds }]) => [id, ttlSeconds]));
  }

  #hasEnded({ endsAt }: Lease): boolean {
    return this.#world.now >= endsAt;
  }

  #renew(lease: Lease): void {
    const now = Math.max(this.#world.now, this.#options.idleUntil());
    lease.endsAt = now + (lease.ttlSeconds * 1_000) / (1 + this.#options.drift);
    if (lease.look !== undefined) lease.look.isCancelled = true;
    this.#lookAfter(lease);
  }

  #lookAfter(lease: Lease): void {
    const late = this.#world.random.next() * LOOKS_EVERY_MS;
    lease.look = this.#world.schedule(lease.endsAt + late, () => this.#look(lease));
  }

  #look(lease: Lease): void {
    const idleUntil = this.#options.idleUntil();
    // Whoever comes back from a standstill has looked already, or looks at some time.
    if (this.#world.now < idleUntil) {
      const late = this.#world.random.chance(0.5) ? 0 : this.#world.random.next() * LOOKS_EVERY_MS;
      lease.look = this.#world.schedule(idleUntil + late, () => this.#look(lease));
    } else this.#end(lease);
  }

  #end(lease: Lease): void {
    if (lease.look !== undefined) lease.look.isCancelled = true;
    this.#leases.delete(lease.id);
    this.#options.ended([...lease.keys].toSorted());
    for (const answer of lease.waiting) answer();
  }
}
