import { type AcquireRequest, TurnWait } from '@locks/core/backend';

/** A waiter of this process, from the attempt that put it into the queue to its grant or its end. */
export interface SqliteWaiter {
  readonly request: AcquireRequest;
  readonly wait: TurnWait;
  /** When core last called for it, on `performance.now()`. */
  lastHeardAt: number;
}

/** The waiters of one backend object, by their ids and by the resources that they wait for. */
export class WaiterIndex {
  readonly #byId = new Map<string, SqliteWaiter>();
  readonly #byResource = new Map<string, Set<SqliteWaiter>>();
  readonly #waitEnded: () => void;

  /** @param waitEnded - called whenever the wait of one of them ends */
  constructor(waitEnded: () => void) {
    this.#waitEnded = waitEnded;
  }

  get count(): number {
    return this.#byId.size;
  }

  get(acquisitionId: string): SqliteWaiter | undefined {
    return this.#byId.get(acquisitionId);
  }

  /** A copy, since a wait that ends may remove its waiter. */
  all(): readonly SqliteWaiter[] {
    return [...this.#byId.values()];
  }

  resources(): readonly string[] {
    return [...this.#byResource.keys()];
  }

  areOn(resource: string): boolean {
    return this.#byResource.has(resource);
  }

  on(resource: string): readonly SqliteWaiter[] {
    return [...(this.#byResource.get(resource) ?? [])];
  }

  /** Adds the waiter of a request, or notes that core still asks for it. */
  keep(request: AcquireRequest): SqliteWaiter {
    const waiter = this.#byId.get(request.acquisitionId) ?? this.#add(request);
    waiter.lastHeardAt = performance.now();
    return waiter;
  }

  remove(acquisitionId: string): SqliteWaiter | undefined {
    const waiter = this.#byId.get(acquisitionId);
    if (waiter === undefined) return undefined;
    this.#byId.delete(acquisitionId);
    const { resource } = waiter.request;
    const neighbours = this.#byResource.get(resource);
    neighbours?.delete(waiter);
    if (neighbours?.size === 0) this.#byResource.delete(resource);
    return waiter;
  }

  #add(request: AcquireRequest): SqliteWaiter {
    const wait = new TurnWait(() => {
      waiter.lastHeardAt = performance.now();
      this.#waitEnded();
    });
    const waiter: SqliteWaiter = { request, wait, lastHeardAt: 0 };
    this.#byId.set(request.acquisitionId, waiter);
    const neighbours = this.#byResource.get(request.resource) ?? new Set();
    this.#byResource.set(request.resource, neighbours.add(waiter));
    return waiter;
  }
}
