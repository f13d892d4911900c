/**
 * Prices of a slow source, for the requests to all machines: one of them asks the source, and the others get what it got, for
 * five seconds more. A source that is slow for a moment is not asked by a thousand requests at once.
 */
import type { FencedLockManager } from '@locks/core';
import { coalesce, type ResultStore } from '@locks/once';

export type Prices = Readonly<Record<string, number>>;

export class SharedPrices {
  readonly #locks: FencedLockManager;
  readonly #store: ResultStore;
  readonly #ask: (signal: AbortSignal) => Promise<Prices>;

  constructor(locks: FencedLockManager, store: ResultStore, ask: (signal: AbortSignal) => Promise<Prices>) {
    this.#locks = locks;
    this.#store = store;
    this.#ask = ask;
  }

  /** A request that ends does not end the question, as long as another one waits for the answer. */
  get(request?: AbortSignal): Promise<Prices> {
    return coalesce(this.#locks, 'prices', ({ signal }) => this.#ask(signal), {
      store: this.#store,
      shareForMs: 5_000,
      waitMs: 10_000,
      signal: request,
    });
  }
}
