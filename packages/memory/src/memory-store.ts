import type { LockMode } from '@locks/core';
import { type AcquireRequest, type Grant, MAX_TIMEOUT_MS, type RenewalStatus } from '@locks/core/backend';
import {
  type Attempted,
  type HoldRecord,
  type LockRecord,
  LockRules,
  type WaiterRecord,
} from '@locks/core/rules';

/** The longest time until an expired hold that nobody asked for again is forgotten, in milliseconds. */
const SWEEP_MS = 60_000;
const FREE: LockRecord = { token: 0, holds: [], waiters: [] };
/** Clients of this store live in this process: none of them dies, and every grant reaches its waiter. */
const ONE_PROCESS = { client: 'this process' };

type MemoryGrant = Extract<Attempted, { status: 'granted' }>;
type HandOffListener = (hold: HoldRecord) => void;

interface MemoryResource {
  readonly rules: LockRules;
  /** The timer of the next end of a hold, while somebody waits for it. */
  timer: NodeJS.Timeout | undefined;
}

/**
 * The state that the backends of one process share: every resource that somebody holds or waits for. The fencing token is one
 * counter for all, so that it rises also for a resource that was forgotten.
 */
export class MemoryStore {
  readonly #resources = new Map<string, MemoryResource>();
  /** The listeners of waiters, by acquisition id. */
  readonly #listeners = new Map<string, HandOffListener>();
  #lastToken = 0;
  #sweeper: NodeJS.Timeout | undefined;

  readonly #clock: { now(): number };

  /** @param clock - in milliseconds; default: the process's monotonic one */
  constructor(clock: { now(): number } = performance) {
    this.#clock = clock;
  }

  /** The reading of the store's clock, in milliseconds. */
  now(): number {
    return this.#clock.now();
  }

  /** Ends the holds that are over by now. Needed where the clock was moved, of which timers know nothing. */
  expireAll(): void {
    for (const name of this.names()) this.#step(name, () => undefined);
  }

  /** The names of all resources that are in use. */
  names(): string[] {
    return [...this.#resources.keys()];
  }

  /** The holders of a resource. */
  holders(name: string): readonly HoldRecord[] {
    return this.#step(name, ({ holds }) => holds);
  }

  /** The waiters of a resource, in the order in which they are served. */
  queued(name: string): readonly WaiterRecord[] {
    return this.#resources.get(name)?.rules.waiters ?? [];
  }

  /** Grants a request, or queues it where `enqueue` is set, or does nothing. */
  acquire(request: AcquireRequest, enqueue: boolean): Attempted {
    return this.#step(request.resource, (rules) => rules.attempt(request, request.ttlMs, enqueue));
  }

  /** Grants every one of the requests, or none. */
  acquireMany(
    requests: readonly AcquireRequest[],
  ): readonly (readonly [AcquireRequest, MemoryGrant])[] | undefined {
    const canBeGranted = ({ resource, acquisitionId, mode }: AcquireRequest): boolean =>
      this.#step(
        resource,
        (rules) =>
          rules.holdOf(acquisitionId) !== undefined ||
          (rules.conflictWith(mode) === undefined && rules.admits(mode)),
      );
    if (!requests.every(canBeGranted)) return undefined;
    return requests.flatMap((request) => {
      const attempted = this.acquire(request, false);
      return attempted.status === 'granted' ? [[request, attempted]] : [];
    });
  }

  /** Calls `handedOff` when the lock is handed to a queued acquisition; gives `false` if the acquisition is not queued. */
  listen({ resource: name, acquisitionId }: AcquireRequest, handedOff: HandOffListener): boolean {
    const isQueued = this.#resources.get(name)?.rules.isQueued(acquisitionId) ?? false;
    if (isQueued) this.#listeners.set(acquisitionId, handedOff);
    return isQueued;
  }

  /** Lets a hold last `ttlMs` milliseconds from now, if it is still there. */
  renew({ request: { resource, acquisitionId }, fencingToken }: Grant, ttlMs: number): RenewalStatus {
    return this.#step(resource, (rules) => rules.renew(acquisitionId, Number(fencingToken), ttlMs));
  }

  /** Turns an exclusive hold into a shared one. */
  downgrade({ request: { resource, acquisitionId }, fencingToken }: Grant): RenewalStatus {
    return this.#step(resource, (rules) => rules.downgrade(acquisitionId, Number(fencingToken)));
  }

  /** Changes the limit of a semaphore; gives a mode that permits conflict with, if one lives on the resource. */
  resize(name: string, limit: number): LockMode | undefined {
    return this.#step(name, (rules) => rules.resize(limit));
  }

  /** Ends the hold of this acquisition, and gives it; `undefined` where it held nothing. */
  release(name: string, acquisitionId: string): HoldRecord | undefined {
    return this.#step(name, (rules) => rules.release(acquisitionId));
  }

  /** Ends all holds of a resource, or that of one acquisition, and gives them. */
  forceRelease(name: string, acquisitionId: string | undefined): readonly HoldRecord[] {
    return this.#step(name, (rules) => rules.forceRelease(acquisitionId));
  }

  /** Makes an acquisition neither hold nor wait. */
  abandon(name: string, acquisitionId: string): void {
    this.#listeners.delete(acquisitionId);
    this.#step(name, (rules) => rules.abandon(acquisitionId));
  }

  /** Takes one step on the current state of a resource, and notifies the waiters to whom the step handed off the lock. */
  #step<T>(name: string, step: (rules: LockRules) => T): T {
    const resource = this.#resources.get(name) ?? {
      rules: new LockRules(FREE, ONE_PROCESS),
      timer: undefined,
    };
    const { rules } = resource;
    const now = this.now();
    rules.token = this.#lastToken;
    rules.expire(now);
    rules.serve();
    const result = step(rules);
    // A waiter counts its lease from the delivery: the store's own count must begin no earlier (docs/spec.md §1.2).
    rules.commit(rules.handedOff.length === 0 ? now : this.now());
    this.#lastToken = rules.token;
    this.#keepOrForget(name, resource);
    if (rules.handedOff.length > 0) this.#deliver(rules.handedOff.splice(0));
    return result;
  }

  #deliver(handedOff: readonly HoldRecord[]): void {
    for (const hold of handedOff) {
      const listener = this.#listeners.get(hold.id);
      this.#listeners.delete(hold.id);
      listener?.(hold);
    }
  }

  #keepOrForget(name: string, resource: MemoryResource): void {
    const { rules } = resource;
    clearTimeout(resource.timer);
    if (rules.isIdle) return void this.#resources.delete(name);
    this.#resources.set(name, resource);
    this.#sweepLater();
    if (rules.waiting === 0 || rules.nextEnd === Infinity) return;
    // A timer notices the end of an abandoned hold, for which no call comes.
    const delay = Math.min(Math.max(0, Math.ceil(rules.nextEnd - this.now())) + 1, MAX_TIMEOUT_MS);
    resource.timer = setTimeout(() => this.#step(name, () => undefined), delay).unref();
  }

  #sweepLater(): void {
    if (this.#sweeper !== undefined) return;
    this.#sweeper = setTimeout(() => {
      this.#sweeper = undefined;
      this.expireAll();
    }, SWEEP_MS).unref();
  }
}
