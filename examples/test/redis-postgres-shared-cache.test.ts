import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from '@locks/core';
import { memoryBackend, MemoryStore } from '@locks/memory';
import { expect, it } from 'vitest';
import { type CacheEntry, type CacheStore, SharedCache } from '../src/shared-cache.ts';

class WatchedStore implements CacheStore<number> {
  #entry: CacheEntry<number> | undefined;
  readonly fences: bigint[] = [];
  #reading = 0;
  mostReading = 0;

  async read(): Promise<CacheEntry<number> | undefined> {
    this.#reading += 1;
    this.mostReading = Math.max(this.mostReading, this.#reading);
    const entry = this.#entry;
    await sleep(5);
    this.#reading -= 1;
    return entry;
  }

  async write(entry: CacheEntry<number>, fence: bigint): Promise<void> {
    if (this.#reading > 0) throw new Error('written while somebody reads');
    this.#entry = entry;
    this.fences.push(fence);
  }

  makeStale(): void {
    if (this.#entry !== undefined) this.#entry = { ...this.#entry, builtAt: 0 };
  }
}

it('is built once when all machines find it stale at once, and read by many at a time', async () => {
  const shared = new MemoryStore();
  const machines = Array.from({ length: 3 }, () => createLocks(memoryBackend(shared)));
  const store = new WatchedStore();
  let builds = 0;
  const build = async (): Promise<number> => {
    await sleep(20);
    builds += 1;
    return builds;
  };
  const caches = machines.map(
    (locks) => new SharedCache(locks, 'prices', { store, build, freshForMs: 60_000 }),
  );
  const getAll = () =>
    Promise.all(Array.from({ length: 24 }, (_, n) => (caches[n % 3] as SharedCache<number>).get()));

  expect(await getAll()).toEqual(Array(24).fill(1));
  store.mostReading = 0;
  expect(await getAll()).toEqual(Array(24).fill(1));
  expect(store.mostReading).toBe(24);
  store.makeStale();
  expect(await getAll()).toEqual(Array(24).fill(2));
  expect(builds).toBe(2);
  const [first = 0n, second = 0n] = store.fences;
  expect(second).toBeGreaterThan(first);
  await Promise.all(machines.map((locks) => locks.close()));
});

it('tries again after a build that failed', async () => {
  await using locks = createLocks(memoryBackend());
  let broken = true;
  const build = async (): Promise<number> => {
    if (broken) throw new Error('the source is away');
    return 7;
  };
  const cache = new SharedCache(locks, 'prices', { store: new WatchedStore(), build, freshForMs: 60_000 });
  await expect(cache.get()).rejects.toThrow('the source is away');
  broken = false;
  expect(await cache.get()).toBe(7);
});
