import type { LockRecord, WaiterRecord } from '@locks/core/rules';
import { areAlike } from './state-json.ts';

/** The most bytes that an entry takes besides its id and label: as a hold, and as the first of a group of waiters. */
const HOLD_BYTES = 330;
const GROUP_BYTES = 140;
const SEPARATOR_BYTES = 1;

/**
 * The bytes that the state of a resource has left. A waiter that may be granted together with others counts
 * as the hold that it becomes, so that no grant and no release ever finds the row too small.
 */
export class RowCapacity {
  #left: number;
  #last: WaiterRecord | undefined;

  constructor(maxBytes: number, { holds, waiters }: Pick<LockRecord, 'holds' | 'waiters'>) {
    this.#left = maxBytes - HOLD_BYTES;
    for (const { id, label } of holds) this.#left -= HOLD_BYTES + textBytes(id) + textBytes(label);
    for (const waiter of waiters) this.#left -= this.#bytesOf(waiter);
  }

  /** Returns whether one more waiter fits, and counts it if so. */
  take(waiter: WaiterRecord): boolean {
    const last = this.#last;
    const bytes = this.#bytesOf(waiter);
    if (bytes <= this.#left) {
      this.#left -= bytes;
      return true;
    }
    this.#last = last;
    return false;
  }

  #bytesOf(waiter: WaiterRecord): number {
    const last = this.#last;
    this.#last = waiter;
    const id = textBytes(waiter.id) + SEPARATOR_BYTES;
    if (waiter.mode.kind !== 'exclusive') return HOLD_BYTES + id + textBytes(waiter.label);
    return last !== undefined && areAlike(last, waiter) ? id : GROUP_BYTES + id + textBytes(waiter.label);
  }
}

/** The length of a text in JSON. */
function textBytes(text: string | undefined): number {
  return text === undefined ? 0 : Buffer.byteLength(JSON.stringify(text));
}
