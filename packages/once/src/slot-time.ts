import type { SlotAnswer } from '@locks/core/backend';
import { type Slot, slotAt } from './slots.ts';

/** The clocks of machines and stores may differ by so much: work that begins with its slot would otherwise be refused by a store that is late. */
const MOST_SKEW_MS = 60_000;
const FIRST_STEP_MS = 1_000;
/** The search for the next slot ends two years ahead: the longest slots of `every` are a year. */
const LAST_STEP_MS = 2 * 31_536_000_000;

/**
 * Whether a slot lies in the future: by the time of the store where it tells one, and otherwise by the clock of this machine, which may be
 * wrong itself and for which the next slot is no future yet.
 */
export function isAhead(slot: Slot, found: string, { storeTime }: Pick<SlotAnswer, 'storeTime'>): boolean {
  const now = storeTime ?? Date.now();
  if (found <= slotAt(slot, now + MOST_SKEW_MS)) return false;
  if (storeTime !== undefined) return true;
  const next = nextSlot(slot, now);
  return next !== undefined && found > next;
}

/** The slot after that of a moment; `undefined` where none follows within two years. */
function nextSlot(slot: Slot, now: number): string | undefined {
  const present = slotAt(slot, now);
  let stepMs = FIRST_STEP_MS;
  while (slotAt(slot, now + stepMs) === present) {
    if (stepMs > LAST_STEP_MS) return undefined;
    stepMs *= 2;
  }
  // The first moment of the next slot lies after `before`, and not after `after`.
  let [before, after] = [now, now + stepMs];
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (slotAt(slot, middle) === present) before = middle;
    else after = middle;
  }
  return slotAt(slot, after);
}
