import { type AcquireRequest, freshAcquisitionId, type Grant, TurnWait } from '@locks/core/backend';
import { CohortLease, type Turn } from './cohort-lease.ts';
import type { CohortLimits } from './cohort-options.ts';

/** An acquisition of this process that waits. */
export interface CohortWaiter {
  readonly request: AcquireRequest;
  /** A number that rises with every waiter of the process. */
  readonly ticket: number;
  readonly wait: TurnWait;
  /** Whether the store has seen the acquisition id, which must not be used again after it was given up. */
  isKnownToStore: boolean;
}

/** The one request of this process for a resource that the store knows of. */
export interface StoreEntry {
  readonly request: AcquireRequest;
  state: 'asked' | 'granted' | 'given-up';
  /** Whether an attempt of this entry is in flight. */
  isUnderWay: boolean;
  /** Whether the entry's waiter has changed: the next attempt of the new one shows the store that it lives. */
  mustAttempt: boolean;
}

/**
 * The waiters of this process for one resource, in the order of their calls. One of them, the leader, waits at the store for
 * all. The waiters present when the store grants take turns with its lease; the first waiter that it does not serve is the
 * next leader.
 */
export class ProcessQueue {
  readonly #limits: CohortLimits;
  /** Called when nobody waits any more. */
  readonly #emptied: () => void;
  /** Called with each turn that begins. */
  readonly #began: (request: AcquireRequest, turn: Turn) => void;
  readonly #waiting = new Map<string, CohortWaiter>();
  #leader: CohortWaiter | undefined;
  #entry: StoreEntry | undefined;
  /** The lease that is passed on; `undefined` while there is no lease, or it is not passed on any more. */
  #lease: CohortLease | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lastTicket = 0;

  constructor(
    limits: CohortLimits,
    emptied: () => void,
    began: (request: AcquireRequest, turn: Turn) => void,
  ) {
    this.#limits = limits;
    this.#emptied = emptied;
    this.#began = began;
  }

  get(acquisitionId: string): CohortWaiter | undefined {
    return this.#waiting.get(acquisitionId);
  }

  isLeader(waiter: CohortWaiter): boolean {
    return this.#leader === waiter;
  }

  /** The store's entry for the leader; `undefined` before its first attempt. */
  get entry(): StoreEntry | undefined {
    return this.#entry;
  }

  join(request: AcquireRequest): CohortWaiter {
    this.#lastTicket += 1;
    const waiter = { request, ticket: this.#lastTicket, wait: new TurnWait(), isKnownToStore: false };
    this.#waiting.set(request.acquisitionId, waiter);
    this.#elect();
    return waiter;
  }

  /** The entry with which the leader attempts. */
  ask(leader: CohortWaiter): StoreEntry {
    const { request } = leader;
    this.#entry ??= {
      // The id of an entry that was given up is not used again: it would be a second acquisition with the same id.
      request: leader.isKnownToStore ? { ...request, acquisitionId: freshAcquisitionId() } : request,
      state: 'asked',
      isUnderWay: false,
      mustAttempt: false,
    };
    if (this.#entry.request === request) leader.isKnownToStore = true;
    return this.#entry;
  }

  /**
   * Removes a waiter that gave up.
   *
   * @returns the entry that the store must forget; `undefined` where there is none, or where another waiter goes on with it
   */
  leave(waiter: CohortWaiter): StoreEntry | undefined {
    this.#waiting.delete(waiter.request.acquisitionId);
    waiter.wait.end();
    if (this.#leader !== waiter) {
      this.#elect();
      return undefined;
    }
    this.#leader = undefined;
    const entry = this.#entry;
    const next = this.#firstOutside();
    // Attempts of one id come one after the other: an entry whose attempt has no answer yet ends with its waiter.
    if (entry !== undefined && !entry.isUnderWay && next?.request.ttlMs === entry.request.ttlMs) {
      entry.mustAttempt = true;
      this.#elect();
      return undefined;
    }
    this.#forgetEntry('given-up');
    this.#elect();
    return entry;
  }

  /** Removes a waiter whose entry the store refused for good: the store keeps nothing of it. */
  refused(waiter: CohortWaiter): void {
    this.#forgetEntry('given-up');
    this.leave(waiter);
  }

  /** Begins a lease after the store granted the entry: the first waiter has the first turn. */
  granted(grant: Grant, now: () => number): void {
    this.#forgetEntry('granted');
    this.#leader = undefined;
    const first = this.#first();
    if (first === undefined) return;
    this.#stopPassingOn();
    const lease = new CohortLease(grant, now(), this.#lastTicket);
    this.#lease = lease;
    this.#begin(first, lease);
    if (this.#waiting.size === 0) return;
    grant.lost?.addEventListener('abort', () => this.close(lease), { once: true });
    this.#closeInTime(lease, now);
    this.#elect();
  }

  /**
   * Closes a lease after its time for turns, or at its end: the holder may never release, and the waiters that count on the
   * lease must ask the store.
   */
  #closeInTime(lease: CohortLease, now: () => number): void {
    const leftMs = Math.min(lease.grantedAt + this.#limits.withinMs, lease.endsAt) - now();
    if (leftMs <= 0) return this.close(lease);
    // A renewal may have moved the end when the time is over.
    this.#timer = setTimeout(() => this.#closeInTime(lease, now), Math.ceil(leftMs)).unref();
  }

  /** Passes the lease on to the next waiter of this process. `false`: the lease must go back to the store. */
  passOn(lease: CohortLease, now: number): boolean {
    const { turns, withinMs } = this.#limits;
    const next = this.#first();
    const mayPass =
      this.#lease === lease &&
      next !== undefined &&
      next !== this.#leader &&
      next.ticket <= lease.lastTicket &&
      lease.turnsTaken < turns &&
      now - lease.grantedAt < withinMs &&
      lease.suits(next.request, now);
    if (mayPass) this.#begin(next, lease);
    return mayPass;
  }

  /** Stops passing the lease on: the waiters that counted on it wait at the store. */
  close(lease = this.#lease): void {
    if (lease === undefined || lease !== this.#lease) return;
    this.#stopPassingOn();
    this.#elect();
  }

  #begin(waiter: CohortWaiter, lease: CohortLease): void {
    this.#waiting.delete(waiter.request.acquisitionId);
    const turn = lease.begin(waiter.request);
    this.#began(waiter.request, turn);
    if (this.#waiting.size === 0) this.#end();
    waiter.wait.end(turn.grant);
  }

  /** Elects a leader where needed: a waiter that waits at the store for those whom the present lease does not serve. */
  #elect(): void {
    if (this.#waiting.size === 0) return this.#end();
    if (this.#leader !== undefined) return;
    this.#leader = this.#firstOutside();
    this.#leader?.wait.end();
  }

  #first(): CohortWaiter | undefined {
    return this.#waiting.values().next().value;
  }

  /** The first waiter whom the present lease does not serve. */
  #firstOutside(): CohortWaiter | undefined {
    let left = this.#lease === undefined ? 0 : this.#limits.turns - this.#lease.turnsTaken;
    for (const waiter of this.#waiting.values()) {
      if (left === 0 || waiter.ticket > (this.#lease?.lastTicket ?? 0)) return waiter;
      left -= 1;
    }
    return undefined;
  }

  #forgetEntry(state: StoreEntry['state']): void {
    if (this.#entry !== undefined) this.#entry.state = state;
    this.#entry = undefined;
  }

  #stopPassingOn(): void {
    clearTimeout(this.#timer);
    this.#lease = undefined;
  }

  #end(): void {
    this.#stopPassingOn();
    this.#emptied();
  }
}
