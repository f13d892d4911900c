import type { Finding } from './diagnosis.ts';
import { warning } from './finding.ts';

/** Clocks that NTP keeps are closer than this. */
const MOST_MS = 1_000;

/**
 * Compares the clock of a store with the one of this machine.
 *
 * @param read - gives the time of the store, in milliseconds since 1970
 * @param resolutionMs - how much earlier than the time that was read it may be in truth
 * @throws what `read` rejects with
 */
export async function clockDifference(
  store: string,
  read: () => Promise<number>,
  resolutionMs = 0,
): Promise<Finding | undefined> {
  const before = Date.now();
  const theirs = await read();
  const after = Date.now();
  // The store read its clock at some moment between the two of ours.
  const aheadMs = Math.max(theirs - after, 0) - Math.max(before - (theirs + resolutionMs), 0);
  if (Math.abs(aheadMs) <= MOST_MS) return undefined;
  const seconds = Math.abs(aheadMs / 1_000).toFixed(1);
  return warning(
    `${store}/clock`,
    `the clock of the store is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the clock of this machine`,
    'keep both in step (NTP), and let it slew: a step of the store’s clock ends leases early or late. Leases do not depend on the clock of this machine.',
  );
}
