import type { LockBackend, LockMode } from '@locks/core';
import { memoryBackend, MemoryStore } from '@locks/memory';
// Not for users: a mutant runs in a process of its own, and may break the store from inside.
import { type QueuedEntry, Resource } from '../../../packages/memory/dist/resource.js';
import { onRequests } from './on-grants.ts';

/** The store is asked for other modes; core does not notice. */
export function onModes(backend: LockBackend, change: (mode: LockMode) => LockMode): LockBackend {
  return onRequests(backend, (request) => ({ ...request, mode: change(request.mode) }));
}

type StoreMethods = {
  [Name in 'acquire' | 'acquireMany' | 'renew' | 'release' | 'forget' | 'downgrade' | 'resize']?: (
    store: MemoryStore,
    args: Parameters<MemoryStore[Name]>,
    original: (...args: Parameters<MemoryStore[Name]>) => ReturnType<MemoryStore[Name]>,
  ) => ReturnType<MemoryStore[Name]>;
};

/** What is broken inside of the store; each gets what the sound one would do. */
export interface Breakage {
  readonly fits?: (resource: Resource, mode: LockMode, fits: (mode: LockMode) => boolean) => boolean;
  readonly admits?: (resource: Resource, mode: LockMode, admits: (mode: LockMode) => boolean) => boolean;
  readonly next?: (resource: Resource, next: () => QueuedEntry | undefined) => QueuedEntry | undefined;
  readonly conflictWith?: (resource: Resource, mode: LockMode) => LockMode | undefined;
  readonly resize?: (resource: Resource, limit: number) => void;
  readonly store?: StoreMethods;
}

/** Memory backends on one broken store. */
export function storeWith(breakage: Breakage): () => LockBackend {
  let store: MemoryStore | undefined;
  return () => {
    store ??= brokenStore(breakage);
    return memoryBackend(store);
  };
}

function brokenStore({
  fits,
  admits,
  next,
  conflictWith,
  resize,
  store: methods = {},
}: Breakage): MemoryStore {
  const sound = Object.getOwnPropertyDescriptors(Resource.prototype);
  const broken = Resource.prototype;
  if (fits) {
    broken.fits = function (this: Resource, mode) {
      return fits(this, mode, (other) => sound.fits.value?.call(this, other) ?? false);
    };
  }
  if (admits) {
    broken.admits = function (this: Resource, mode) {
      return admits(this, mode, (other) => sound.admits.value?.call(this, other) ?? false);
    };
  }
  if (next) {
    Object.defineProperty(broken, 'next', {
      get(this: Resource) {
        return next(this, () => sound.next.get?.call(this));
      },
    });
  }
  if (conflictWith) {
    broken.conflictWith = function (this: Resource, mode) {
      return conflictWith(this, mode);
    };
  }
  if (resize) {
    broken.resize = function (this: Resource, limit) {
      resize(this, limit);
    };
  }
  const store = new MemoryStore();
  for (const [name, change] of Object.entries(methods)) {
    const original = (store[name as keyof StoreMethods] as (...args: unknown[]) => unknown).bind(store);
    const changed = change as (store: MemoryStore, args: unknown[], original: unknown) => unknown;
    Object.defineProperty(store, name, { value: (...args: unknown[]) => changed(store, args, original) });
  }
  return store;
}
