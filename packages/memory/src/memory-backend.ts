import type {
  AcquireRequest,
  Attempt,
  Call,
  Grant,
  Holder,
  LockBackend,
  RenewItem,
  ResourceState,
  Standing,
} from '@locks/core';
import { type HeldEntry, MemoryStore } from './memory-store.ts';

const capabilities = {
  tenure: 'lease',
  reach: 'process',
  modes: ['exclusive'],
  order: 'fifo',
  fencing: 'volatile',
  ttl: { minMs: 10, stepMs: 1 },
  features: ['list', 'waiters', 'force-release'],
} as const;

export type MemoryCapabilities = typeof capabilities;
export type MemoryBackend = LockBackend<MemoryCapabilities>;

/**
 * Locks inside one process: the reference backend, for tests and for applications that are one process.
 *
 * @param store - what several backends share; default: one of its own
 * @example
 * ```ts
 * const locks = createLocks(memoryBackend());
 * ```
 */
export function memoryBackend(store: MemoryStore = new MemoryStore()): MemoryBackend {
  return new InProcessBackend(store);
}

class InProcessBackend implements MemoryBackend {
  readonly spec = 'locks-backend/1';
  readonly name = 'memory';
  readonly capabilities = capabilities;
  readonly #store: MemoryStore;

  constructor(store: MemoryStore) {
    this.#store = store;
  }

  attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    const countedFrom = call.now();
    const startedAt = this.#store.now();
    const held = this.#store.acquire(request, enqueue);
    if (held === undefined) return Promise.resolve({ status: 'contended' });
    const grant = grantOf(held, countedFrom);
    if (held.since >= startedAt) return Promise.resolve({ status: 'granted', grant });
    // Granted by an earlier attempt with this id: what is left of that lease.
    const validForMs = held.expiresAt - startedAt;
    return Promise.resolve({ status: 'granted', grant: { ...grant, validForMs } });
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    return new Promise((resolve) => {
      const { signal } = call;
      const stop = (): void => resolve(undefined);
      signal?.addEventListener('abort', stop, { once: true });
      this.#store.listen(request, (held) => {
        signal?.removeEventListener('abort', stop);
        // Store and waiter share a process and a moment: the lease starts now.
        resolve(grantOf(held, call.now()));
      });
      // Handed over between the attempt and this call: another attempt gets it.
      if (this.#store.holder(request.resource)?.request.acquisitionId === request.acquisitionId) stop();
    });
  }

  abandon(request: AcquireRequest): Promise<void> {
    this.#store.forget(request.resource, request.acquisitionId);
    return Promise.resolve();
  }

  renew(items: readonly RenewItem[]): Promise<readonly Standing[]> {
    return Promise.resolve(items.map((item) => this.#renew(item)));
  }

  release(grant: Grant): Promise<'released' | 'not-held'> {
    const { resource, acquisitionId } = grant.request;
    return Promise.resolve(
      this.#store.release(resource, acquisitionId) === undefined ? 'not-held' : 'released',
    );
  }

  inspect(resource: string): Promise<ResourceState> {
    return Promise.resolve(this.#state(resource));
  }

  async *list(prefix: string): AsyncGenerator<ResourceState> {
    for (const name of this.#store.names()) {
      if (!name.startsWith(prefix)) continue;
      const state = this.#state(name);
      if (state.holders.length + state.waiters.length > 0) yield state;
    }
  }

  forceRelease(resource: string, expectedId: string | undefined): Promise<readonly Holder[]> {
    const held = this.#store.holder(resource);
    if (held === undefined) return Promise.resolve([]);
    const { acquisitionId } = held.request;
    if (expectedId !== undefined && expectedId !== acquisitionId) return Promise.resolve([]);
    const holder = holderOf(held, this.#store.now());
    this.#store.release(resource, acquisitionId);
    return Promise.resolve([holder]);
  }

  isRetryable(): boolean {
    return false;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #renew({ grant, ttlMs }: RenewItem): Standing {
    const standing = this.#store.renew(grant.request.resource, grant.request.acquisitionId, ttlMs);
    switch (standing) {
      case 'held':
        return { status: 'held' };
      case 'other':
        return { status: 'lost', reason: 'taken-over' };
      case 'absent':
        return { status: 'lost', reason: 'force-released' };
      default:
        return standing satisfies never;
    }
  }

  #state(resource: string): ResourceState {
    const now = this.#store.now();
    const held = this.#store.holder(resource);
    return {
      resource,
      holders: held === undefined ? [] : [holderOf(held, now)],
      waiters: this.#store.queued(resource).map(({ request, since }) => ({
        acquisitionId: request.acquisitionId,
        mode: request.mode,
        ...(request.label === undefined ? undefined : { label: request.label }),
        waitingForMs: now - since,
      })),
    };
  }
}

function grantOf({ request, fencingToken }: HeldEntry, countedFrom: number): Grant {
  return { request, fencingToken, countedFrom };
}

function holderOf({ request, fencingToken, since, expiresAt }: HeldEntry, now: number): Holder {
  return {
    acquisitionId: request.acquisitionId,
    mode: request.mode,
    ...(request.label === undefined ? undefined : { label: request.label }),
    fencingToken,
    heldForMs: now - since,
    expiresInMs: expiresAt - now,
  };
}
