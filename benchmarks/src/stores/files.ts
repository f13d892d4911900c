import { localStore } from './local.ts';
import type { Store } from './store.ts';

/** The folder of the local store, for those who lock by its files. */
export const filesStore: Store = { ...localStore, id: 'files' };
