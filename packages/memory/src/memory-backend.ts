import type {
  AcquireRequest,
  Attempt,
  Call,
  Conflict,
  Grant,
  Holder,
  LockBackend,
  RenewItem,
  ResourceState,
  Standing,
} from '@locks/core';
import { MemoryStore } from './memory-store.ts';
import type { HeldEntry } from './resource.ts';

const capabilities = {
  tenure: 'lease',
  reach: 'process',
  modes: ['exclusive', 'shared', 'permit'],
  order: 'fifo',
  fencing: 'volatile',
  ttl: { minMs: 10, stepMs: 1 },
  features: ['list', 'waiters', 'force-release', 'steal', 'many'],
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
    const acquired = this.#store.acquire(request, enqueue);
    if (acquired.status !== 'granted') return Promise.resolve(acquired);
    const grant = grantOf(acquired.held, countedFrom, startedAt);
    return Promise.resolve({ status: 'granted', grant });
  }

  attemptMany(requests: readonly AcquireRequest[], call: Call): Promise<readonly Grant[] | undefined> {
    const countedFrom = call.now();
    const startedAt = this.#store.now();
    const all = this.#store.acquireMany(requests);
    return Promise.resolve(all?.map((held) => grantOf(held, countedFrom, startedAt)));
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    return new Promise((resolve) => {
      const { signal } = call;
      const stop = (): void => resolve(undefined);
      signal?.addEventListener('abort', stop, { once: true });
      this.#store.listen(request, (held) => {
        signal?.removeEventListener('abort', stop);
        // Store and waiter share a process and a moment: the lease starts now.
        resolve(grantOf(held, call.now(), held.since));
      });
      // Handed over between the attempt and this call: another attempt gets it.
      const { acquisitionId } = request;
      if (
        !this.#store.queued(request.resource).some((entry) => entry.request.acquisitionId === acquisitionId)
      ) {
        stop();
      }
    });
  }

  abandon(request: AcquireRequest): Promise<void> {
    this.#store.forget(request.resource, request.acquisitionId);
    return Promise.resolve();
  }

  renew(items: readonly RenewItem[]): Promise<readonly Standing[]> {
    return Promise.resolve(
      items.map(({ grant: { request }, ttlMs }) =>
        standingOf(this.#store.renew(request.resource, request.acquisitionId, ttlMs)),
      ),
    );
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
    const now = this.#store.now();
    const ended = this.#store
      .holders(resource)
      .filter(({ request }) => expectedId === undefined || request.acquisitionId === expectedId);
    for (const { request } of ended) this.#store.release(resource, request.acquisitionId);
    return Promise.resolve(ended.map((held) => holderOf(held, now)));
  }

  downgrade({ request }: Grant): Promise<Standing> {
    return Promise.resolve(standingOf(this.#store.downgrade(request.resource, request.acquisitionId)));
  }

  resize(resource: string, limit: number): Promise<{ readonly status: 'set' } | Conflict> {
    const conflict = this.#store.resize(resource, limit);
    return Promise.resolve(
      conflict === undefined ? { status: 'set' } : { status: 'conflict', with: conflict },
    );
  }

  isRetryable(): boolean {
    return false;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #state(resource: string): ResourceState {
    const now = this.#store.now();
    return {
      resource,
      holders: this.#store.holders(resource).map((held) => holderOf(held, now)),
      waiters: this.#store.queued(resource).map(({ request, since }) => ({
        acquisitionId: request.acquisitionId,
        mode: request.mode,
        ...(request.label === undefined ? undefined : { label: request.label }),
        waitingForMs: now - since,
      })),
    };
  }
}

/** Of a lease that an earlier attempt with the same id was granted: what is left of it. */
function grantOf(
  { request, fencingToken, since, expiresAt }: HeldEntry,
  countedFrom: number,
  startedAt: number,
): Grant {
  const grant = { request, fencingToken, countedFrom };
  return since >= startedAt ? grant : { ...grant, validForMs: expiresAt - startedAt };
}

function standingOf(standing: 'held' | 'absent' | 'other'): Standing {
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
