import { TurnWait } from './turn-wait.ts';
import type { AcquireRequest, Call, Grant } from './types.ts';

const POLL_EVERY_MS = 1_000;

/** An acquisition of this process in the queue of a resource, from the attempt that put it there to its grant or its end. */
export interface LocalWaiter {
  /** The request that waits. */
  readonly request: AcquireRequest;
  /** The waiter's pending `awaitTurn`, if there is one: `wait.call` is `undefined` between two of them. */
  readonly wait: TurnWait;
  /** Core's last call for this waiter. A lease that is granted while no `awaitTurn` is pending is counted by its clock. */
  call: Call;
  /** A grant that came while no `awaitTurn` was pending: the next `awaitTurn` gives it. */
  grant: Grant | undefined;
  /** The time of core's last call for this waiter, on `performance.now()`. */
  lastCallAt: number;
}

/** Options of {@link LocalWaiters}: what the waiters of one backend object need of it. */
export interface LocalWaitersOptions<W extends LocalWaiter> {
  /** Adds what the backend itself keeps of a waiter. */
  readonly make?: (waiter: LocalWaiter) => W;
  /**
   * Asks the store about all waiters, and keeps them alive there. Polls of one object do not overlap. When it throws or rejects,
   * all waits end: the attempts that follow report what is wrong with the store.
   */
  readonly poll?: () => void | Promise<void>;
  /**
   * The longest time from the end of a poll to the next one, while there are waiters, in milliseconds.
   * @defaultValue 1 000
   */
  readonly pollEveryMs?: number;
  /** Called when the last waiter of a resource has left. */
  readonly emptied?: (resource: string) => void;
}

// setup: declare const store: { isFree(name: string): boolean };
/**
 * The waiters of one backend object, by acquisition id and by resource, and the timer of the one poller that serves all of them.
 * Registering costs no I/O; the timer ends after the last waiter; only a pending `awaitTurn` keeps the process alive.
 *
 * @example
 * ```ts
 * import { type AcquireRequest, type Attempt, type Call, LocalWaiters } from '@locks/core/backend';
 *
 * const waiters = new LocalWaiters({
 *   pollEveryMs: 500,
 *   poll() {
 *     for (const resource of waiters.resources()) if (store.isFree(resource)) waiters.hint(resource);
 *   },
 * });
 *
 * // The last step of `attempt(request, true, call)`.
 * export function attempted(request: AcquireRequest, call: Call, attempt: Attempt): void {
 *   if (attempt.status === 'contended') waiters.register(request, call);
 *   else waiters.remove(request);
 * }
 * export const awaitTurn = (request: AcquireRequest, call: Call) => waiters.awaitTurn(request, call);
 * // The last step of `release`, and of `abandon` after `waiters.remove(request)`.
 * export const freed = (resource: string) => waiters.hint(resource);
 * ```
 */
export class LocalWaiters<W extends LocalWaiter = LocalWaiter> {
  readonly #options: LocalWaitersOptions<W>;
  readonly #byId = new Map<string, W>();
  /** The waiters of each resource, in the order in which they came. */
  readonly #byResource = new Map<string, Set<W>>();
  #pending = 0;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = Infinity;
  #isPolling = false;
  /** The shortest time that `pollWithin` was given during the present poll. */
  #nextMs = Infinity;
  #closed = false;

  constructor(options: LocalWaitersOptions<W> = {}) {
    this.#options = options;
  }

  /** The number of waiters. */
  get size(): number {
    return this.#byId.size;
  }

  /** The number of pending calls of `awaitTurn`. */
  get pending(): number {
    return this.#pending;
  }

  /** The waiter of an id. */
  get(acquisitionId: string): W | undefined {
    return this.#byId.get(acquisitionId);
  }

  /** A copy of all waiters, in the order in which they came. */
  all(): readonly W[] {
    return [...this.#byId.values()];
  }

  /** A copy of the waiters of a resource, in the order in which they came. */
  of(resource: string): readonly W[] {
    return [...(this.#byResource.get(resource) ?? [])];
  }

  /** The number of waiters that a resource has here. */
  countOf(resource: string): number {
    return this.#byResource.get(resource)?.size ?? 0;
  }

  /** A copy of the names that have waiters. */
  resources(): readonly string[] {
    return [...this.#byResource.keys()];
  }

  /** Registers an acquisition that is, or may be, in the queue of the store. A known acquisition keeps its place here. */
  register(request: AcquireRequest, call: Call): W {
    const waiter = this.#byId.get(request.acquisitionId) ?? this.#add(request, call);
    waiter.call = call;
    waiter.lastCallAt = performance.now();
    return waiter;
  }

  /** Registers the acquisition and waits. Resolves with its grant, or with `undefined` for a hint. */
  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const { wait, grant } = this.register(request, call);
    if (grant !== undefined || this.#closed) {
      this.remove(request);
      return Promise.resolve(grant);
    }
    const turn = wait.begin(call);
    if (wait.call !== undefined) {
      this.#pending += 1;
      this.#timer?.ref();
    }
    return turn;
  }

  /** Gives a waiter its grant now, or with its next `awaitTurn`. The waiter is removed once core has the grant. */
  grant(waiter: W, grant: Grant): void {
    if (waiter.wait.call === undefined) waiter.grant = grant;
    else this.remove(waiter.request, grant);
  }

  /** Removes a waiter, and ends its wait. Returns the waiter, or `undefined` for an id that does not wait here. */
  remove({ acquisitionId, resource }: AcquireRequest, grant?: Grant): W | undefined {
    const waiter = this.#byId.get(acquisitionId);
    if (waiter === undefined) return undefined;
    this.#byId.delete(acquisitionId);
    const neighbours = this.#byResource.get(resource);
    neighbours?.delete(waiter);
    if (neighbours?.size === 0) {
      this.#byResource.delete(resource);
      this.#options.emptied?.(resource);
    }
    waiter.wait.end(grant);
    return waiter;
  }

  /** Ends the waits for a resource, or all of them, without a grant: core attempts again. The waiters stay registered. */
  hint(resource?: string): void {
    const waiters = resource === undefined ? this.#byId.values() : this.#byResource.get(resource);
    for (const { wait } of waiters ?? []) wait.end();
  }

  /**
   * The waiters without a pending `awaitTurn`, and without a call of core for `ms` milliseconds: core gave up without an
   * abandon, or the abandon got no answer. Their entries in the store must not block those behind them.
   */
  silentFor(ms: number): readonly W[] {
    const before = performance.now() - ms;
    return this.all().filter(({ wait, lastCallAt }) => wait.call === undefined && lastCallAt < before);
  }

  /** Plans a poll within `ms` milliseconds; an earlier plan stays. A call during a poll counts from the end of that poll. */
  pollWithin(ms: number): void {
    if (this.#isPolling) this.#nextMs = Math.min(this.#nextMs, ms);
    // A plan never moves to a later time: waiters that come one after another must not put the poll off.
    else if (this.#timer === undefined || performance.now() + ms < this.#dueAt) this.#plan(ms);
  }

  /** Ends all waits and the timer. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const { request } of this.all()) this.remove(request);
  }

  #add(request: AcquireRequest, call: Call): W {
    const wait = new TurnWait(() => {
      waiter.lastCallAt = performance.now();
      this.#pending -= 1;
      if (this.#pending === 0) this.#timer?.unref();
    });
    const { make = (made) => made as W } = this.#options;
    const waiter = make({ request, wait, call, grant: undefined, lastCallAt: 0 });
    this.#byId.set(request.acquisitionId, waiter);
    const neighbours = this.#byResource.get(request.resource) ?? new Set();
    this.#byResource.set(request.resource, neighbours.add(waiter));
    if (this.#timer === undefined) this.pollWithin(this.#options.pollEveryMs ?? POLL_EVERY_MS);
    return waiter;
  }

  #plan(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#closed || this.#options.poll === undefined) return;
    this.#dueAt = performance.now() + ms;
    this.#timer = setTimeout(() => void this.#poll(), ms);
    // Only an acquire that waits keeps the process alive.
    if (this.#pending === 0) this.#timer.unref();
  }

  async #poll(): Promise<void> {
    this.#timer = undefined;
    if (this.#byId.size === 0) return;
    this.#isPolling = true;
    this.#nextMs = this.#options.pollEveryMs ?? POLL_EVERY_MS;
    try {
      await this.#options.poll?.();
    } catch {
      this.hint();
    }
    this.#isPolling = false;
    this.#plan(this.#nextMs);
  }
}
