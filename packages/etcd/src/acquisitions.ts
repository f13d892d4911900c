import { type AcquireRequest, type Call, LocalWaiters } from '@locks/core/backend';
import { Acquisition } from './acquisition.ts';
import type { Keys } from './keys.ts';

const SWEEP_MS = 5_000;
/** The time after which core does not repeat the abandon of an id. */
const ABANDONED_MS = 60_000;
/** The most resources of one transaction: a server accepts 128 operations. */
const MOST_AT_ONCE = 100;

/** The acquisitions of one backend that hold, wait, or have an attempt under way. */
export class Acquisitions {
  readonly #known: LocalWaiters<Acquisition>;
  /** Abandoned acquisitions whose deletion the store has not confirmed yet. */
  readonly #abandoned = new Map<string, Acquisition>();
  #timer: NodeJS.Timeout | undefined;

  constructor(keys: Keys) {
    this.#known = new LocalWaiters({ make: (waiter) => new Acquisition(waiter, keys) });
  }

  get(acquisitionId: string): Acquisition | undefined {
    return this.#known.get(acquisitionId);
  }

  all(): readonly Acquisition[] {
    return this.#known.all();
  }

  /** The acquisitions, and the abandoned ones, for which core has had no call for `ms` milliseconds. */
  silentFor(ms: number): readonly Acquisition[] {
    const before = performance.now() - ms;
    const abandoned = [...this.#abandoned.values()].filter(({ lastCallAt }) => lastCallAt < before);
    return [...this.#known.silentFor(ms), ...abandoned];
  }

  open(request: AcquireRequest, call: Call): Acquisition {
    this.#timer ??= setInterval(() => this.#sweep(), SWEEP_MS).unref();
    return this.#known.register(request, call);
  }

  /** Removes an id, so that only another abandon finds it. Returns every acquisition of the id, a new one if there is none. */
  abandon(request: AcquireRequest, call: Call): Acquisition[] {
    const { acquisitionId } = request;
    const earlier = this.#abandoned.get(acquisitionId);
    const live = this.get(acquisitionId) ?? (earlier === undefined ? this.open(request, call) : undefined);
    if (live !== undefined) {
      this.#known.remove(request);
      this.#abandoned.set(acquisitionId, live);
    }
    const now = performance.now();
    const all = [earlier, live].filter((each) => each !== undefined);
    for (const each of all) {
      each.abandonedAt ??= now;
      each.lastCallAt = now;
    }
    return all;
  }

  /** Whether other acquisitions of this backend hold the resource or wait for it. */
  hasOthers({ request }: Acquisition): boolean {
    return this.#known.countOf(request.resource) > 1;
  }

  forget(acquisition: Acquisition): void {
    const { acquisitionId } = acquisition.request;
    if (this.#abandoned.get(acquisitionId) === acquisition) this.#abandoned.delete(acquisitionId);
    if (this.get(acquisitionId) === acquisition) this.#known.remove(acquisition.request);
    if (this.#known.size + this.#abandoned.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#known.close();
    this.#abandoned.clear();
  }

  /** Forgets holds that expired, where no watch reports their end, and abandoned acquisitions that stay unconfirmed for long. */
  #sweep(): void {
    const now = performance.now();
    for (const acquisition of this.#abandoned.values()) {
      const { abandonedAt = now } = acquisition;
      if (now > abandonedAt + ABANDONED_MS) this.forget(acquisition);
    }
    for (const acquisition of this.all()) {
      const { hold } = acquisition;
      // Another instance may renew the hold for longer than this one knows (docs/spec.md §4.8).
      if (hold === undefined || acquisition.holdWatch !== undefined || now < hold.endsAt + SWEEP_MS) continue;
      this.forget(acquisition);
    }
  }
}

/** Groups waiters by resource, and the groups into chunks for one transaction each. */
export function byResource(acquisitions: readonly Acquisition[]): Acquisition[][][] {
  const groups = new Map<string, Acquisition[]>();
  for (const acquisition of acquisitions) {
    if (acquisition.position === undefined) continue;
    const { resource } = acquisition.request;
    const others = groups.get(resource);
    if (others === undefined) groups.set(resource, [acquisition]);
    else others.push(acquisition);
  }
  const resources = [...groups.values()];
  return Array.from({ length: Math.ceil(resources.length / MOST_AT_ONCE) }, (_, chunk) =>
    resources.slice(chunk * MOST_AT_ONCE, (chunk + 1) * MOST_AT_ONCE),
  );
}
