import type { Holder, LossReason, ResourceState } from '@locks/core';
import {
  type LockBackend,
  type Attempt,
  type Call,
  type Grant,
  mustBe,
  refuseAfterClose,
  type RenewalStatus,
  type RenewItem,
  TurnWait,
} from '@locks/core/backend';
import { type MemoryBackend, memoryBackend, type MemoryCapabilities } from './memory-backend.ts';
import { MemoryStore } from './memory-store.ts';
import { MovableClock } from './movable-clock.ts';

/** The holder that an acquire of a refused name sees. */
const SOMEBODY: Holder = {
  acquisitionId: 'somebody-else',
  mode: { kind: 'exclusive' },
  label: 'somebody else',
};

/** A memory backend with faults on demand: docs/guides/testing-code-that-locks.md. */
export interface MemoryTestBackend extends LockBackend<MemoryCapabilities> {
  /**
   * Takes the resource from its holders at once: `lease.signal` aborts before this returns.
   * @param reason - the reason of the loss; default `taken-over`
   * @returns the number of leases that were lost
   */
  lose(name: string, reason?: LossReason): number;
  /**
   * Refuses the resource to every acquire from now on, as if another process held it. Present holders keep it.
   * @returns a function that ends the refusal; waiters then get their turn
   */
  refuse(name: string): () => void;
  /**
   * Makes every call to the store fail from now on: acquires and releases with `LOCK_BACKEND`, and leases are lost as
   * `unconfirmed` at their end.
   * @param name - the only resource whose calls fail; default: all
   * @returns a function that ends the failure
   */
  fail(name?: string): () => void;
  /**
   * Moves the clock of the store and of the locks forward, as if the process had stood still for so long: no lease is renewed
   * on the way. Leases that are over by then are lost, and waits given up, before this returns.
   * @param ms - milliseconds
   * @throws LockError `LOCK_INVALID_ARGUMENT`
   */
  advance(ms: number): void;
}

// setup: import { createLocks } from '@locks/core'; import { memoryTestBackend } from '@locks/memory'; declare function work(): Promise<void>;
/**
 * A memory backend for tests of code that locks: it loses and refuses locks on demand, and has a clock to move.
 *
 * @example
 * ```ts
 * const memory = memoryTestBackend();
 * const locks = createLocks(memory);
 * const working = locks.lock('sku:42').run(work);
 * memory.lose('sku:42'); // `working` rejects with LOCK_LOST
 * ```
 */
export function memoryTestBackend(): MemoryTestBackend {
  return new FaultyBackend();
}

/** The error of a store that is away: the call may be repeated. */
class StoreAway extends Error {
  constructor() {
    super('the store is away: the test says so');
  }
}

class FaultyBackend implements MemoryTestBackend {
  readonly spec = 'locks-backend/1';
  readonly name = 'memory';
  readonly capabilities: MemoryCapabilities;
  readonly clock = new MovableClock();
  readonly #store = new MemoryStore(this.clock);
  readonly #backend: MemoryBackend = memoryBackend(this.#store);
  /** Controllers that report the loss of a grant, by its acquisition id. */
  readonly #losing = new Map<string, AbortController>();
  /** The waits for each refused name. */
  readonly #refused = new Map<string, Set<TurnWait>>();
  readonly #away: (string | undefined)[] = [];

  constructor() {
    this.capabilities = this.#backend.capabilities;
    refuseAfterClose(this);
  }

  lose(name: string, reason: LossReason = 'taken-over'): number {
    const held = this.#store.holders(name);
    for (const { id } of held) {
      // The loss is reported to the holder before the next one enters (docs/spec.md §8.2).
      this.#losing.get(id)?.abort(reason);
      this.#losing.delete(id);
      this.#store.release(name, id);
    }
    return held.length;
  }

  refuse(name: string): () => void {
    const waiting = this.#refused.get(name) ?? new Set();
    this.#refused.set(name, waiting);
    return () => {
      if (this.#refused.get(name) !== waiting) return;
      this.#refused.delete(name);
      for (const wait of [...waiting]) wait.end();
    };
  }

  fail(name?: string): () => void {
    this.#away.push(name);
    let ended = false;
    return () => {
      if (!ended) this.#away.splice(this.#away.indexOf(name), 1);
      ended = true;
    };
  }

  advance(ms: number): void {
    if (!(Number.isFinite(ms) && ms >= 0))
      throw mustBe('advance(): ms', 'a number of milliseconds from 0', ms);
    this.clock.advance(ms);
    // The locks have read the clock before: a loss is reported before the next one enters (docs/spec.md §8.2).
    this.#store.expireAll();
  }

  async attempt(...[request, enqueue, call]: Parameters<LockBackend['attempt']>): Promise<Attempt> {
    this.#assertThere(request.resource);
    if (this.#isRefused(request.resource, request.acquisitionId)) return { status: 'contended' };
    const attempt = await this.#backend.attempt(request, enqueue, call);
    return attempt.status === 'granted' ? { ...attempt, grant: this.#losable(attempt.grant) } : attempt;
  }

  async attemptMany(
    ...[requests, call]: Parameters<NonNullable<LockBackend['attemptMany']>>
  ): Promise<readonly Grant[] | undefined> {
    for (const { resource } of requests) this.#assertThere(resource);
    if (requests.some(({ resource, acquisitionId }) => this.#isRefused(resource, acquisitionId)))
      return undefined;
    return (await this.#backend.attemptMany?.(requests, call))?.map((grant) => this.#losable(grant));
  }

  async awaitTurn(
    ...[request, call]: Parameters<NonNullable<LockBackend['awaitTurn']>>
  ): Promise<Grant | undefined> {
    const waiting = this.#refused.get(request.resource);
    const isQueued = this.#store.queued(request.resource).some(({ id }) => id === request.acquisitionId);
    if (waiting !== undefined && !isQueued) return this.#untilAllowed(waiting, call);
    const grant = await this.#backend.awaitTurn?.(request, call);
    return grant && this.#losable(grant);
  }

  async abandon(...[request, call]: Parameters<LockBackend['abandon']>): Promise<void> {
    this.#assertThere(request.resource);
    this.#losing.delete(request.acquisitionId);
    return this.#backend.abandon(request, call);
  }

  async renew(items: readonly RenewItem[], call: Call): Promise<readonly RenewalStatus[]> {
    return Promise.all(
      items.map(async (item): Promise<RenewalStatus> => {
        if (this.#isAway(item.grant.request.resource)) return { status: 'unknown', error: new StoreAway() };
        return (await this.#backend.renew([item], call))[0] as RenewalStatus;
      }),
    );
  }

  async release(grant: Grant, call: Call): Promise<'released' | 'not-held' | 'unknown'> {
    this.#assertThere(grant.request.resource);
    this.#losing.delete(grant.request.acquisitionId);
    return this.#backend.release(grant, call);
  }

  async downgrade(...args: Parameters<NonNullable<LockBackend['downgrade']>>): Promise<RenewalStatus> {
    this.#assertThere(args[0].request.resource);
    return (await this.#backend.downgrade?.(...args)) as RenewalStatus;
  }

  async resize(...args: Parameters<NonNullable<LockBackend['resize']>>) {
    this.#assertThere(args[0]);
    return (await this.#backend.resize?.(...args)) ?? ({ status: 'set' } as const);
  }

  async inspect(resource: string, call: Call): Promise<ResourceState> {
    this.#assertThere(resource);
    const state = await this.#backend.inspect(resource, call);
    const hasSomebody = this.#refused.has(resource) && state.holders.length === 0;
    return hasSomebody ? { ...state, holders: [SOMEBODY] } : state;
  }

  async *list(prefix: string, call: Call): AsyncGenerator<ResourceState> {
    this.#assertThere();
    yield* this.#backend.list?.(prefix, call) ?? [];
  }

  async forceRelease(
    ...args: Parameters<NonNullable<LockBackend['forceRelease']>>
  ): Promise<readonly Holder[]> {
    this.#assertThere(args[0]);
    return (await this.#backend.forceRelease?.(...args)) ?? [];
  }

  async ping(): Promise<void> {
    this.#assertThere();
  }

  isRetryable(error: unknown): boolean {
    return error instanceof StoreAway;
  }

  close(): Promise<void> {
    return this.#backend.close();
  }

  #isAway(name?: string): boolean {
    return this.#away.some((away) => away === undefined || away === name);
  }

  #assertThere(name?: string): void {
    if (this.#isAway(name)) throw new StoreAway();
  }

  #isRefused(name: string, acquisitionId: string): boolean {
    if (!this.#refused.has(name)) return false;
    return [...this.#store.holders(name), ...this.#store.queued(name)].every(
      ({ id }) => id !== acquisitionId,
    );
  }

  #untilAllowed(waiting: Set<TurnWait>, call: Call): Promise<Grant | undefined> {
    const wait: TurnWait = new TurnWait(() => void waiting.delete(wait));
    waiting.add(wait);
    return wait.begin(call);
  }

  #losable(grant: Grant): Grant {
    const { acquisitionId } = grant.request;
    const controller = this.#losing.get(acquisitionId) ?? new AbortController();
    this.#losing.set(acquisitionId, controller);
    return { ...grant, lost: controller.signal };
  }
}
