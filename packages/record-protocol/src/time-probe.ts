import type { RecordStore } from './record-store.ts';
import type { StoreClock } from './store-clock.ts';
import type { StoreRequests } from './store-requests.ts';
import { ownLimit, type TimeLimit } from './time-limit.ts';

/** How seldom a store is asked again that gave no answer, in milliseconds. */
const PAUSE_MS = 1_000;

/**
 * Asks a store for its time whose ordinary answers do not tell it: one request for all names at once. A store without `askTime` is never
 * asked.
 */
export class TimeProbe {
  readonly #store: RecordStore;
  readonly #requests: StoreRequests;
  readonly #clock: StoreClock;
  #asking: Promise<void> | undefined;
  #askedAt = -Infinity;
  /** Whether the store was asked, or read, and told no time. */
  #isTimeless = false;

  constructor(store: RecordStore, requests: StoreRequests, clock: StoreClock) {
    this.#store = store;
    this.#requests = requests;
    this.#clock = clock;
  }

  get canAsk(): boolean {
    return this.#store.askTime !== undefined;
  }

  /** Whether a newer time is wanted before a grant. A store that told none is not asked in vain before each. */
  get isWanted(): boolean {
    return this.#clock.isStale && !this.#isTimeless;
  }

  /** Called when the store was read for its time: where it told none, it never will. */
  wasRead(): void {
    this.#isTimeless = !this.#clock.isKnown;
  }

  /** @throws the error of the store, where it gave no answer */
  async ask(limit: TimeLimit): Promise<void> {
    this.#asking ??= this.#ask(limit).finally(() => {
      this.#asking = undefined;
    });
    await this.#asking;
  }

  /** Whether a newer time could tell more of holds with these ends, and the store may be asked for it now. */
  canTellMore(ends: readonly number[]): boolean {
    return this.canAsk && this.#clock.canLearnOf(ends) && !this.#isPausing;
  }

  /** Asks for the time in the background, where that is old: no grant waits for it. */
  keepNew(): void {
    if (!this.canAsk || !this.#clock.isOld || this.#isPausing) return;
    this.ask(ownLimit()).catch(() => undefined);
  }

  get #isPausing(): boolean {
    return this.#asking === undefined && performance.now() - this.#askedAt < PAUSE_MS;
  }

  async #ask(limit: TimeLimit): Promise<void> {
    this.#askedAt = performance.now();
    await this.#requests.askTime(limit);
    this.wasRead();
  }
}
