import type { Holder, ResourceState } from '@locks/core';
import {
  type LockBackend,
  type AcquireRequest,
  type Attempt,
  type Call,
  type Conflict,
  type Grant,
  type InspectOptions,
  mustBe,
  refuseAfterClose,
  type RenewalStatus,
  type RenewItem,
  TurnWait,
} from '@locks/core/backend';
import type { HoldRecord } from '@locks/core/rules';
import { MemoryStore } from './memory-store.ts';

const capabilities = {
  tenure: 'lease',
  renewal: 'own-client',
  reach: 'process',
  modes: ['exclusive', 'shared', 'permit'],
  order: 'fifo',
  fencing: 'volatile',
  ttl: { minMs: 10, stepMs: 1 },
  features: ['list', 'waiters', 'force-release', 'steal', 'transfer', 'max-waiters', 'many'],
} as const;

/** The capabilities of the backend. */
export type MemoryCapabilities = typeof capabilities;
/** A backend whose store is in this process. */
export type MemoryBackend = LockBackend<MemoryCapabilities>;

// setup: import { createLocks } from '@locks/core'; import { memoryBackend } from '@locks/memory';
/**
 * Locks inside one process: the reference backend, for tests and for applications that are one process.
 *
 * @param store - the state that several backends share; default: one of its own
 * @throws LockError `LOCK_INVALID_ARGUMENT` for what is no `MemoryStore`
 * @example
 * ```ts
 * const locks = createLocks(memoryBackend());
 * ```
 */
export function memoryBackend(store: MemoryStore = new MemoryStore()): MemoryBackend {
  // The store may come from another copy of this package, with a class of its own.
  const { acquire } = (store ?? {}) as Partial<MemoryStore>;
  if (typeof acquire !== 'function') throw mustBe('memoryBackend(): the store', 'a MemoryStore', store);
  return new InProcessBackend(store);
}

class InProcessBackend implements MemoryBackend {
  readonly spec = 'locks-backend/1';
  readonly name = 'memory';
  readonly capabilities = capabilities;
  readonly #store: MemoryStore;

  constructor(store: MemoryStore) {
    this.#store = store;
    refuseAfterClose(this);
  }

  attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    const countedFrom = call.now();
    const attempted = this.#store.acquire(request, enqueue);
    if (attempted.status !== 'granted') return Promise.resolve(attempted);
    const { hold, left } = attempted;
    return Promise.resolve({ status: 'granted', grant: grantOf(request, hold, left, countedFrom) });
  }

  attemptMany(requests: readonly AcquireRequest[], call: Call): Promise<readonly Grant[] | undefined> {
    const countedFrom = call.now();
    const granted = this.#store.acquireMany(requests);
    return Promise.resolve(
      granted?.map(([request, { hold, left }]) => grantOf(request, hold, left, countedFrom)),
    );
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const wait = new TurnWait();
    const turn = wait.begin(call);
    // Store and waiter share a process and a moment: the lease starts now.
    const isQueued = this.#store.listen(request, (hold) =>
      wait.end(grantOf(request, hold, undefined, call.now())),
    );
    // The lock was handed off between the attempt and this call: another attempt gets it.
    if (!isQueued) wait.end();
    return turn;
  }

  abandon({ resource, acquisitionId }: AcquireRequest): Promise<void> {
    return Promise.resolve(this.#store.abandon(resource, acquisitionId));
  }

  renew(items: readonly RenewItem[]): Promise<readonly RenewalStatus[]> {
    return Promise.resolve(items.map(({ grant, ttlMs }) => this.#store.renew(grant, ttlMs)));
  }

  release({ request }: Grant): Promise<'released' | 'not-held'> {
    const ended = this.#store.release(request.resource, request.acquisitionId);
    return Promise.resolve(ended === undefined ? 'not-held' : 'released');
  }

  inspect(resource: string, _call?: Call, options?: InspectOptions): Promise<ResourceState> {
    return Promise.resolve(this.#state(resource, options));
  }

  async *list(prefix: string): AsyncGenerator<ResourceState> {
    for (const name of this.#store.names()) {
      if (!name.startsWith(prefix)) continue;
      const state = this.#state(name);
      if (state.holders.length + state.waiters.length > 0) yield state;
    }
  }

  forceRelease(resource: string, expectedId: string | undefined): Promise<readonly Holder[]> {
    const now = this.#store.now();
    const ended = this.#store.forceRelease(resource, expectedId);
    return Promise.resolve(ended.map((hold) => toHolder(hold, now)));
  }

  downgrade(grant: Grant): Promise<RenewalStatus> {
    return Promise.resolve(this.#store.downgrade(grant));
  }

  resize(resource: string, limit: number): Promise<{ readonly status: 'set' } | Conflict> {
    const conflict = this.#store.resize(resource, limit);
    return Promise.resolve(
      conflict === undefined ? { status: 'set' } : { status: 'conflict', with: conflict },
    );
  }

  ping(): Promise<void> {
    return Promise.resolve();
  }

  isRetryable(): boolean {
    return false;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #state(resource: string, { waiters }: InspectOptions = { waiters: true }): ResourceState {
    const now = this.#store.now();
    const queued = waiters ? this.#store.queued(resource) : [];
    return {
      name: resource,
      holders: this.#store.holders(resource).map((hold) => toHolder(hold, now)),
      waiters: queued.map(({ id, mode, label, since = now }) => ({
        acquisitionId: id,
        mode,
        ...(label !== undefined && { label }),
        waitingForMs: now - since,
      })),
    };
  }
}

/** @param left - the rest of a lease that an earlier attempt with the same id was granted; `undefined`: the lease is new */
function grantOf(
  request: AcquireRequest,
  { token }: HoldRecord,
  left: number | undefined,
  countedFrom: number,
): Grant {
  const grant = { request, fencingToken: BigInt(token), countedFrom };
  return left === undefined ? grant : { ...grant, validForMs: left };
}

function toHolder({ id, mode, label, token, since = 0, until = 0 }: HoldRecord, now: number): Holder {
  return {
    acquisitionId: id,
    mode,
    ...(label !== undefined && { label }),
    fencingToken: BigInt(token),
    heldForMs: now - since,
    expiresInMs: until - now,
  };
}
