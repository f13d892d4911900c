import { type BackendCapabilities, type LockBackend, optional, readOptions, text } from '@locks/core/backend';
import type { RecordStore } from './record-store.ts';
import { StoreTable } from './store-table.ts';
import { createTableBackend } from './table-backend.ts';

const FEATURES = ['waiters', 'force-release', 'steal', 'hand-over', 'max-waiters'] as const;

/** The capabilities of a backend on a {@link RecordStore}; `list` is a feature where the store has it. */
export interface RecordCapabilities extends BackendCapabilities {
  readonly tenure: 'lease';
  readonly reach: 'network';
  readonly modes: readonly ['exclusive', 'shared', 'permit'];
  readonly order: 'fifo';
  readonly fencing: 'durable';
  readonly expiry: 'clock' | 'observed';
}

/** The options of a backend on a {@link RecordStore}. */
export interface RecordBackendOptions {
  /**
   * The start of all keys, at most 128 characters. Locks with different prefixes have nothing in common, unless one prefix begins
   * with another.
   * @defaultValue `'locks/'`
   */
  readonly prefix?: string;
}

/** The option `prefix`, for the tables of options of adapters. */
export const prefixOption = optional(text('at most 128 characters', /^[^]{0,128}$/), 'locks/');

/**
 * Makes a backend out of a store that compares and swaps records. Constructing does no I/O.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function createRecordBackend(
  store: RecordStore,
  options?: RecordBackendOptions,
): LockBackend<RecordCapabilities> {
  const { prefix } = readOptions('createRecordBackend()', options, { prefix: prefixOption });
  return createTableBackend(new StoreTable(store, prefix), {
    tenure: 'lease',
    expiry: store.clock === undefined ? 'observed' : 'clock',
    reach: 'network',
    modes: ['exclusive', 'shared', 'permit'],
    order: 'fifo',
    fencing: 'durable',
    ttl: { minMs: 50, stepMs: 1 },
    features: store.list === undefined ? FEATURES : ['list', ...FEATURES],
  });
}
