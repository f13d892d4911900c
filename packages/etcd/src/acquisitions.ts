import type { AcquireRequest } from '@locks/core/backend';
import { Acquisition } from './acquisition.ts';
import type { Keys } from './keys.ts';

const SWEEP_MS = 5_000;
/** Core does not repeat the abandon of an id after this time. */
const ABANDONED_MS = 60_000;

/** The acquisitions of one backend that hold, wait, or have an attempt under way. */
export class Acquisitions {
  readonly #keys: Keys;
  readonly #byId = new Map<string, Acquisition>();
  /** Abandoned acquisitions whose deletion the store has not confirmed yet. */
  readonly #abandoned = new Map<string, Acquisition>();
  readonly #perResource = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  constructor(keys: Keys) {
    this.#keys = keys;
  }

  get(acquisitionId: string): Acquisition | undefined {
    return this.#byId.get(acquisitionId);
  }

  all(): Acquisition[] {
    return [...this.#byId.values()];
  }

  open(request: AcquireRequest): Acquisition {
    const { resource, acquisitionId } = request;
    const known = this.#byId.get(acquisitionId);
    if (known !== undefined) return known;
    const acquisition = new Acquisition(request, this.#keys);
    this.#byId.set(acquisitionId, acquisition);
    this.#perResource.set(resource, (this.#perResource.get(resource) ?? 0) + 1);
    this.#timer ??= setInterval(() => this.#sweep(), SWEEP_MS).unref();
    return acquisition;
  }

  /** Removes an id, so that only another abandon finds it. Returns every acquisition of the id, a new one if there is none. */
  abandon(request: AcquireRequest): Acquisition[] {
    const { acquisitionId } = request;
    const earlier = this.#abandoned.get(acquisitionId);
    const live = this.#byId.get(acquisitionId) ?? (earlier === undefined ? this.open(request) : undefined);
    if (live === undefined) return earlier === undefined ? [] : [earlier];
    this.#remove(live);
    this.#abandoned.set(acquisitionId, live);
    return earlier === undefined ? [live] : [earlier, live];
  }

  /** Whether other acquisitions of this backend hold the resource or wait for it. */
  hasOthers({ request }: Acquisition): boolean {
    return (this.#perResource.get(request.resource) ?? 0) > 1;
  }

  forget(acquisition: Acquisition): void {
    const { acquisitionId } = acquisition.request;
    if (this.#abandoned.get(acquisitionId) === acquisition) this.#abandoned.delete(acquisitionId);
    if (this.#byId.get(acquisitionId) === acquisition) this.#remove(acquisition);
    if (this.#byId.size + this.#abandoned.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#byId.clear();
    this.#abandoned.clear();
    this.#perResource.clear();
  }

  #remove({ request }: Acquisition): void {
    const { resource, acquisitionId } = request;
    this.#byId.delete(acquisitionId);
    const left = (this.#perResource.get(resource) ?? 1) - 1;
    if (left > 0) this.#perResource.set(resource, left);
    else this.#perResource.delete(resource);
  }

  /** Forgets holds that expired without another call, and abandoned acquisitions that stay unconfirmed for long. */
  #sweep(): void {
    const now = performance.now();
    for (const acquisition of this.#abandoned.values()) {
      acquisition.abandonedAt ??= now;
      if (now > acquisition.abandonedAt + ABANDONED_MS) this.forget(acquisition);
    }
    for (const acquisition of this.#byId.values()) {
      const { hold } = acquisition;
      if (hold === undefined || now < hold.endsAt + SWEEP_MS) continue;
      this.forget(acquisition);
      acquisition.holdWatch?.stop();
    }
  }
}
