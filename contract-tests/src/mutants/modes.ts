import type { LockMode } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { LockRules, type WaiterRecord } from '@locks/core/rules';
// Imports the source, not the package: a mutant runs in a process of its own and may change the store from inside.
import { memoryBackend, MemoryStore } from '../../../packages/memory/src/index.ts';
import { onRequests } from './on-grants.ts';

/** Asks the store for other modes without core's knowledge. */
export function onModes(backend: LockBackend, change: (mode: LockMode) => LockMode): LockBackend {
  return onRequests(backend, (request) => ({ ...request, mode: change(request.mode) }));
}

/** The mutations inside the store and its rules. Each function gets the correct behaviour. */
export interface Breakage {
  readonly fits?: (rules: LockRules, mode: LockMode, fits: (mode: LockMode) => boolean) => boolean;
  readonly admits?: (rules: LockRules, mode: LockMode, admits: (mode: LockMode) => boolean) => boolean;
  readonly next?: (rules: LockRules, next: () => WaiterRecord | undefined) => WaiterRecord | undefined;
  readonly abandon?: (
    store: MemoryStore,
    args: Parameters<MemoryStore['abandon']>,
    abandon: MemoryStore['abandon'],
  ) => void;
}

/** Memory backends on one broken store. */
export function storeWith(breakage: Breakage): () => LockBackend {
  let store: MemoryStore | undefined;
  return () => {
    store ??= brokenStore(breakage);
    return memoryBackend(store);
  };
}

function brokenStore({ fits, admits, next, abandon }: Breakage): MemoryStore {
  const sound = Object.getOwnPropertyDescriptors(LockRules.prototype);
  const broken = LockRules.prototype;
  if (fits) {
    broken.fits = function (this: LockRules, mode) {
      return fits(this, mode, (other) => sound.fits.value?.call(this, other) ?? false);
    };
  }
  if (admits) {
    broken.admits = function (this: LockRules, mode) {
      return admits(this, mode, (other) => sound.admits.value?.call(this, other) ?? false);
    };
  }
  if (next) {
    Object.defineProperty(broken, 'next', {
      get(this: LockRules) {
        return next(this, () => sound.next.get?.call(this));
      },
    });
  }
  const store = new MemoryStore();
  if (abandon) {
    const original = store.abandon.bind(store);
    store.abandon = (...args) => abandon(store, args, original);
  }
  return store;
}
