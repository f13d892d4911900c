/**
 * A cache that many read and one rebuilds, over all machines. Readers do not hinder one another; the first who finds it
 * stale rebuilds it alone, and the others read what that one built instead of building it again.
 */
import type { LockManager, ReadWriteLock } from '@locks/core';

export interface CacheEntry<T> {
  readonly value: T;
  readonly builtAt: number;
}

/** Where the cache lies: a table, a bucket. A real one rejects a write with an older fence. */
export interface CacheStore<T> {
  read(): Promise<CacheEntry<T> | undefined>;
  write(entry: CacheEntry<T>, fence: bigint): Promise<void>;
}

export interface SharedCacheOptions<T> {
  readonly store: CacheStore<T>;
  readonly build: (signal: AbortSignal) => Promise<T>;
  readonly freshForMs: number;
}

export class SharedCache<T> {
  readonly #lock: ReadWriteLock;
  readonly #options: SharedCacheOptions<T>;

  constructor(locks: LockManager, name: string, options: SharedCacheOptions<T>) {
    this.#lock = locks.readWriteLock(`cache:${name}`);
    this.#options = options;
  }

  async get(): Promise<T> {
    const entry = await this.#lock.read.run(() => this.#fresh());
    return entry === undefined ? this.#rebuild() : entry.value;
  }

  // Not inside the read: a read lease never becomes a write lease, since two that tried would wait for each other.
  #rebuild(): Promise<T> {
    return this.#lock.write.run(
      async (lease) => {
        // Another one may have built it while this one waited for its turn.
        const built = await this.#fresh();
        if (built !== undefined) return built.value;
        const value = await this.#options.build(lease.signal);
        // Building may have taken long: what is written now must still be ours to write.
        lease.assertValid(1_000);
        await this.#options.store.write({ value, builtAt: Date.now() }, lease.fencingToken ?? 0n);
        return value;
      },
      { waitMs: 30_000 },
    );
  }

  async #fresh(): Promise<CacheEntry<T> | undefined> {
    const entry = await this.#options.store.read();
    return entry !== undefined && Date.now() - entry.builtAt < this.#options.freshForMs ? entry : undefined;
  }
}
