import { type BackendCapabilities, type LockBackend, optional, readOptions, text } from '@locks/core/backend';
import type { RecordStore } from './record-store.ts';
import { RecordsAsTable } from './records-as-table.ts';
import { createTableBackend } from './kernel-backend.ts';

const FEATURES = ['waiters', 'force-release', 'steal', 'transfer', 'max-waiters'] as const;

/** The capabilities of a backend on a {@link RecordStore}; `list` is a feature where the store has it. */
export interface RecordCapabilities<Reach extends 'host' | 'network' = 'network'>
  extends BackendCapabilities {
  readonly tenure: 'lease';
  readonly renewal: 'any-client';
  readonly reach: Reach;
  readonly modes: readonly ['exclusive', 'shared', 'permit'];
  readonly order: 'fifo';
  readonly fencing: 'durable';
  readonly expiry: 'clock' | 'observed';
}

/** The options of a backend on a {@link RecordStore}. */
export interface RecordBackendOptions {
  /**
   * The start of all keys, at most 128 characters without `lock/`, which stands between them and the name. Locks with different
   * prefixes have nothing in common.
   * @defaultValue `'locks/'`
   */
  readonly prefix?: string;
}

/** The option `prefix`: the first `lock/` of a key ends it, so that no key belongs to two prefixes. For the tables of options of adapters. */
export const prefixOption = optional(
  text("at most 128 characters without 'lock/'", /^(?![^]*lock\/)[^]{0,128}$/),
  'locks/',
);

/**
 * Makes a backend out of a store that compares and swaps records. Constructing does no I/O.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function createRecordBackend<Reach extends 'host' | 'network' = 'network'>(
  store: RecordStore & { readonly reach?: Reach },
  options?: RecordBackendOptions,
): LockBackend<RecordCapabilities<Reach>> {
  const { prefix } = readOptions('createRecordBackend()', options, { prefix: prefixOption });
  const { stepMs, skewMs, endsHolds = true } = store.clock;
  return createTableBackend(new RecordsAsTable(store, prefix), {
    tenure: 'lease',
    renewal: 'any-client',
    expiry: endsHolds ? 'clock' : 'observed',
    reach: (store.reach ?? 'network') as Reach,
    modes: ['exclusive', 'shared', 'permit'],
    order: 'fifo',
    fencing: 'durable',
    // The times of the grant and of the look at it are each read within a step, and from servers that are apart.
    ttl: { minMs: store.minTtlMs ?? 50, stepMs: 1, ...(endsHolds && { marginMs: 2 * (stepMs + skewMs) }) },
    features: store.list === undefined ? FEATURES : ['list', ...FEATURES],
  });
}
