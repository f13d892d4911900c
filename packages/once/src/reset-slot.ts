import { type AcquireOptions, type FencedLease, LockError, type LockManager } from '@locks/core';
import {
  abortSignal,
  checkManager,
  defaultLabel,
  MAX_TIMEOUT_MS,
  milliseconds,
  type SlotStore,
  optional,
  type OptionTable,
  readOptions,
  type SlotEntry,
  text,
  wholeNumber,
} from '@locks/core/backend';
import { overtakenBefore, readEntry, readSlots, writeEntry } from './slot-store.ts';

/** Options of {@link resetSlot}. All times are milliseconds. */
export interface ResetSlotOptions extends Pick<AcquireOptions, 'ttlMs' | 'waitMs' | 'signal'> {
  /** The slot store of the work. */
  readonly slots: SlotStore;
  /**
   * Who resets, for the slot store and operators: at most 256 UTF-8 bytes, no control characters.
   * @defaultValue `host:pid`
   */
  readonly label?: string | undefined;
}

const TABLE = {
  slots: readSlots,
  // Core reads these again, with the limits of the backend.
  ttlMs: optional(wholeNumber(1, MAX_TIMEOUT_MS, 'milliseconds')),
  waitMs: optional(milliseconds(0, Number.POSITIVE_INFINITY)),
  signal: optional(abortSignal),
  label: optional(text('a string', /^/)),
} satisfies OptionTable<ResetSlotOptions>;

// setup: import type { FencedLockManager } from '@locks/core'; import { type SlotStore, resetSlot } from '@locks/once';
// setup: declare const locks: FencedLockManager; declare const slots: SlotStore;
/**
 * Lets the next call of `once` run, whatever slot the slot store has: after a machine whose clock was ahead has recorded a slot of the future, or
 * to repeat a slot. It waits for the lock of the work, so that no run is under way, and keeps the entry with the state `reset` and a newer token.
 *
 * @param name - the name of the work and of its lock
 * @returns the entry that counts no longer; `undefined` where the work has none
 * @throws LockError `LOCK_TIMEOUT` while the work runs, `LOCK_CONTENDED` with `waitMs` 0; `LOCK_LOST` where the slot store has a newer token than the lock gives; `LOCK_UNSUPPORTED` on a
 * backend without fencing tokens; `LOCK_INVALID_ARGUMENT` and the codes of `acquire`. What the slot store throws, and the reason of `signal`, as they are
 * @example
 * ```ts
 * const forgotten = await resetSlot(locks, 'invoices', { slots });
 * console.log(forgotten?.slot); // '2028-01-02'
 * ```
 */
export async function resetSlot(
  locks: Pick<LockManager<FencedLease>, 'lock' | 'capabilities'>,
  name: string,
  options: ResetSlotOptions,
): Promise<SlotEntry | undefined> {
  checkManager('resetSlot(): the first argument', locks);
  const { slots, label = defaultLabel(), ...times } = readOptions('resetSlot()', options, TABLE);
  const lock = locks.lock(name, { label });
  if (locks.capabilities.fencing === 'none') {
    const says = 'resetSlot() needs a backend with fencing tokens.';
    throw new LockError('LOCK_UNSUPPORTED', says, { lockName: name });
  }
  return lock.run(async ({ fencingToken: token }) => {
    const { entry } = await readEntry(slots, name);
    if (entry === undefined) return undefined;
    const reset: SlotEntry = { slot: entry.slot, state: 'reset', token, label, at: Date.now() };
    if (!(await writeEntry(slots, name, reset))) throw overtakenBefore(name, 'resetSlot()');
    return entry;
  }, times);
}
