import { milliseconds, oneOf, optional } from '@locks/core/backend';
import type { RecordClock } from './record-store.ts';

/** The option `expiry`, for the tables of options of adapters. */
export const expiryOption = optional(oneOf('clock', 'observed'), 'clock');

/** The option `skewMs`: how far apart the clocks of the servers may be, in milliseconds. */
export function skewOption(defaultMs: number) {
  return optional(milliseconds(0, 60_000), defaultMs);
}

/** The clock of a store with these options, whose times have steps of `stepMs`. */
export function clockOf(
  { expiry, skewMs }: { readonly expiry: 'clock' | 'observed'; readonly skewMs: number },
  stepMs: number,
): RecordClock {
  return { stepMs, skewMs, endsHolds: expiry === 'clock' };
}
