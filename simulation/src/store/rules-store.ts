import type { LockMode } from '@locks/core';
import type { AcquireRequest, RenewalStatus } from '@locks/core/backend';
import type {
  Attempted,
  HoldRecord,
  LockRecord,
  LockRules,
  RulesContext,
  WaiterRecord,
} from '@locks/core/rules';
import type { ScheduledEvent } from '../kernel/event-queue.ts';
import type { World } from '../kernel/world.ts';
import type { StoreNode } from '../network/link.ts';
import { QueueCheck } from '../checks/queue-check.ts';

/** A client from which the store has heard nothing for so long is taken for dead, in milliseconds. */
export const ALIVE_MS = 1_000;

const FREE: LockRecord = { token: 0, holds: [], waiters: [] };

export type RulesClass = new (record: LockRecord, context: RulesContext) => LockRules;

/** What a waiter learns of itself: handed off, still queued, or unknown to the store. */
export type QueueAnswer = 'held' | 'queued' | 'gone';

interface StoredResource {
  readonly rules: LockRules;
  readonly check: QueueCheck;
  /** The next end of a hold, or of a client. */
  timer: ScheduledEvent | undefined;
}

/** A store of the pure rules of `@locks/core/rules`, outside of all processes. Its clock runs as fast as it likes. */
export class RulesStore implements StoreNode {
  readonly name: string;
  readonly #world: World;
  readonly #drift: number;
  readonly #Rules: RulesClass;
  readonly #resources = new Map<string, StoredResource>();
  /** When the store heard of each client last, by its own clock. */
  readonly #heard = new Map<string, number>();
  /** Tells a client that a lock was handed to one of its waiters. */
  readonly #pushes = new Map<string, (resource: string, id: string) => void>();
  #lastToken = 0;
  #awayUntil = 0;

  constructor(world: World, name: string, drift: number, Rules: RulesClass) {
    this.#world = world;
    this.name = name;
    this.#drift = drift;
    this.#Rules = Rules;
  }

  get isAway(): boolean {
    return this.#world.now < this.#awayUntil;
  }

  /** Refuses connections for so long, and keeps its data. */
  goAway(ms: number): void {
    this.#awayUntil = this.#world.now + ms;
  }

  now(): number {
    return this.#world.now * (1 + this.#drift);
  }

  connect(client: string, push: (resource: string, id: string) => void): void {
    this.#pushes.set(client, push);
  }

  attempt(client: string, request: AcquireRequest, enqueue: boolean): Attempted {
    return this.#step(client, request.resource, (rules) => rules.attempt(request, request.ttlMs, enqueue));
  }

  /** Grants every one of the requests, or none. */
  attemptMany(client: string, requests: readonly AcquireRequest[]): readonly Attempted[] | undefined {
    const fits = ({ resource, acquisitionId, mode }: AcquireRequest): boolean =>
      this.#step(client, resource, (rules) => {
        const isHeld = rules.holdOf(acquisitionId) !== undefined;
        return isHeld || (rules.conflictWith(mode) === undefined && rules.admits(mode));
      });
    if (!requests.every(fits)) return undefined;
    return requests.map((request) => this.attempt(client, request, false));
  }

  /** A sign of life of a client, which asks for its waiters. */
  beat(
    client: string,
    waiting: readonly (readonly [resource: string, id: string])[],
  ): readonly QueueAnswer[] {
    return waiting.map(([resource, id]) =>
      this.#step(client, resource, (rules) => {
        if (rules.holdOf(id) !== undefined) return 'held';
        return rules.isQueued(id) ? 'queued' : 'gone';
      }),
    );
  }

  renew(client: string, resource: string, id: string, token: number, ttlMs: number): RenewalStatus {
    return this.#step(client, resource, (rules) => rules.renew(id, token, ttlMs));
  }

  downgrade(client: string, resource: string, id: string, token: number): RenewalStatus {
    return this.#step(client, resource, (rules) => rules.downgrade(id, token));
  }

  resize(client: string, resource: string, limit: number): LockMode | undefined {
    return this.#step(client, resource, (rules) => rules.resize(limit));
  }

  release(client: string, resource: string, id: string): HoldRecord | undefined {
    return this.#step(client, resource, (rules) => rules.release(id));
  }

  abandon(client: string, resource: string, id: string): void {
    this.#step(client, resource, (rules) => rules.abandon(id));
  }

  forceRelease(client: string, resource: string, id: string | undefined): readonly HoldRecord[] {
    return this.#step(client, resource, (rules) => rules.forceRelease(id));
  }

  /** What the store keeps of a resource at this moment. */
  read(resource: string): {
    readonly holds: readonly HoldRecord[];
    readonly waiters: readonly WaiterRecord[];
  } {
    return this.#step(undefined, resource, ({ holds, waiters }) => ({ holds, waiters }));
  }

  modeHeld(resource: string, id: string): LockMode['kind'] | undefined {
    const hold = this.#resources.get(resource)?.rules.holdOf(id);
    return hold !== undefined && this.now() < (hold.until ?? Infinity) ? hold.mode.kind : undefined;
  }

  /** The names of the resources of which something is kept. */
  names(): string[] {
    return [...this.#resources.keys()];
  }

  #step<T>(client: string | undefined, name: string, step: (rules: LockRules) => T): T {
    const now = this.now();
    if (client !== undefined) this.#heard.set(client, now);
    // The context is that of one step, and the rules outlive it.
    const record = this.#resources.get(name)?.rules ?? FREE;
    const { token: _, holds, waiters } = record;
    const rules = new this.#Rules(
      { token: this.#lastToken, holds, waiters },
      {
        client: client ?? 'the store',
        isAlive: (other) => now - (this.#heard.get(other) ?? now) < ALIVE_MS,
      },
    );
    const resource: StoredResource = {
      rules,
      check: this.#resources.get(name)?.check ?? new QueueCheck(this.#world, name),
      timer: this.#resources.get(name)?.timer,
    };
    rules.expire(now);
    rules.serve();
    const waited = rules.waiters;
    const result = step(rules);
    rules.commit(now);
    this.#lastToken = Math.max(this.#lastToken, rules.token);
    resource.check.stepTaken(rules.holds, rules.waiters, waited);
    this.#keepOrForget(name, resource);
    for (const { id } of rules.handedOff.splice(0)) {
      const client = waiters.find((waiter) => waiter.id === id)?.client;
      if (client !== undefined) this.#pushes.get(client)?.(name, id);
    }
    return result;
  }

  #keepOrForget(name: string, resource: StoredResource): void {
    const { rules, timer } = resource;
    if (timer !== undefined) timer.isCancelled = true;
    resource.timer = undefined;
    if (rules.isIdle) return void this.#resources.delete(name);
    this.#resources.set(name, resource);
    if (rules.waiting === 0) return;
    const inMs = Math.min(rules.nextEnd - this.now(), ALIVE_MS / 2);
    const at = this.#world.now + Math.max(inMs, 0) / (1 + this.#drift) + 0.01;
    resource.timer = this.#world.schedule(at, () => void this.read(name));
  }
}
