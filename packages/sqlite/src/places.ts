import type { AcquireRequest, Call, Grant } from '@locks/core/backend';

/** A waiter of this process, from the attempt that put it into the line to its grant or its end. */
export interface Place {
  readonly request: AcquireRequest;
  /** Present while core sits in `awaitTurn`. */
  wait: Wait | undefined;
  /** When core was last heard of, on `performance.now()`. */
  lastHeardAt: number;
}

export interface Wait {
  readonly call: Call;
  readonly end: (grant: Grant | undefined) => void;
}

/** The waiters of one backend object, by their ids and by what they wait for. */
export class Places {
  readonly #byId = new Map<string, Place>();
  readonly #byResource = new Map<string, Set<Place>>();

  get count(): number {
    return this.#byId.size;
  }

  get(acquisitionId: string): Place | undefined {
    return this.#byId.get(acquisitionId);
  }

  /** A copy, since a wait that ends may take its place out. */
  all(): readonly Place[] {
    return [...this.#byId.values()];
  }

  resources(): readonly string[] {
    return [...this.#byResource.keys()];
  }

  areOn(resource: string): boolean {
    return this.#byResource.has(resource);
  }

  on(resource: string): readonly Place[] {
    return [...(this.#byResource.get(resource) ?? [])];
  }

  /** Makes the place of a request, or notes that core still asks for it. */
  keep(request: AcquireRequest): Place {
    const now = performance.now();
    const known = this.#byId.get(request.acquisitionId);
    if (known !== undefined) {
      known.lastHeardAt = now;
      return known;
    }
    const place: Place = { request, wait: undefined, lastHeardAt: now };
    this.#byId.set(request.acquisitionId, place);
    const neighbours = this.#byResource.get(request.resource);
    if (neighbours === undefined) this.#byResource.set(request.resource, new Set([place]));
    else neighbours.add(place);
    return place;
  }

  remove(acquisitionId: string): Place | undefined {
    const place = this.#byId.get(acquisitionId);
    if (place === undefined) return undefined;
    this.#byId.delete(acquisitionId);
    const { resource } = place.request;
    const neighbours = this.#byResource.get(resource);
    neighbours?.delete(place);
    if (neighbours?.size === 0) this.#byResource.delete(resource);
    return place;
  }
}
