import type { AcquireRequest } from '@locks/core/backend';
import { Acquisition } from './acquisition.ts';
import type { Keys } from './keys.ts';

const SWEEP_MS = 5_000;
/** Nobody gives an id up again so much later. */
const GIVEN_UP_MS = 60_000;

/** The acquisitions of one backend that hold, wait, or are on their way. */
export class Acquisitions {
  readonly #keys: Keys;
  readonly #byId = new Map<string, Acquisition>();
  /** Given up, and the store has not confirmed it yet. */
  readonly #givenUp = new Map<string, Acquisition>();
  readonly #perResource = new Map<string, number>();
  readonly #onForgotten: (acquisition: Acquisition) => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(keys: Keys, onForgotten: (acquisition: Acquisition) => void) {
    this.#keys = keys;
    this.#onForgotten = onForgotten;
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
    const acquisition = new Acquisition(
      request,
      this.#keys.of(resource, acquisitionId),
      this.#keys.rangeOf(resource),
    );
    this.#byId.set(acquisitionId, acquisition);
    this.#perResource.set(resource, (this.#perResource.get(resource) ?? 0) + 1);
    this.#timer ??= setInterval(() => this.#sweep(), SWEEP_MS).unref();
    return acquisition;
  }

  /** From here on nobody finds it but who gives it up once more. Gives what there is of this id, at least a blank. */
  giveUp(request: AcquireRequest): Acquisition[] {
    const { acquisitionId } = request;
    const earlier = this.#givenUp.get(acquisitionId);
    const live = this.#byId.get(acquisitionId) ?? (earlier === undefined ? this.open(request) : undefined);
    if (live === undefined) return earlier === undefined ? [] : [earlier];
    this.#remove(live);
    this.#givenUp.set(acquisitionId, live);
    return earlier === undefined ? [live] : [earlier, live];
  }

  /** Whether others of this backend hold the resource, or wait for it. */
  hasOthers({ request }: Acquisition): boolean {
    return (this.#perResource.get(request.resource) ?? 0) > 1;
  }

  forget(acquisition: Acquisition): void {
    const { acquisitionId } = acquisition.request;
    if (this.#givenUp.get(acquisitionId) === acquisition) this.#givenUp.delete(acquisitionId);
    if (this.#byId.get(acquisitionId) === acquisition) this.#remove(acquisition);
    if (this.#byId.size + this.#givenUp.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#byId.clear();
    this.#givenUp.clear();
    this.#perResource.clear();
  }

  #remove({ request }: Acquisition): void {
    const { resource, acquisitionId } = request;
    this.#byId.delete(acquisitionId);
    const left = (this.#perResource.get(resource) ?? 1) - 1;
    if (left > 0) this.#perResource.set(resource, left);
    else this.#perResource.delete(resource);
  }

  /** A hold that ran out, and that nobody asked for again, is forgotten; so is what could not be given up for long. */
  #sweep(): void {
    const now = performance.now();
    for (const acquisition of this.#givenUp.values()) {
      acquisition.givenUpAt ??= now;
      if (now > acquisition.givenUpAt + GIVEN_UP_MS) this.forget(acquisition);
    }
    for (const acquisition of this.#byId.values()) {
      const { hold } = acquisition;
      if (hold === undefined || now < hold.endsAt + SWEEP_MS) continue;
      this.forget(acquisition);
      this.#onForgotten(acquisition);
    }
  }
}
