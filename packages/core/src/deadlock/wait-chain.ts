import type { ChainMember } from '../errors.ts';

/** The most members of a chain: who is further away explains nothing. */
const MAX_MEMBERS = 16;

/** A holder, as far as a chain tells of it. */
export type ChainHolder = Pick<ChainMember, 'acquisitionId'> &
  Partial<Pick<ChainMember, 'label' | 'heldForMs' | 'expiresInMs'>>;

/** Tells who holds a lock, and what code inside of a hold waits for. */
export interface WaitSource<Place extends { readonly name: string }> {
  /** The holders of a lock, as far as they are known. */
  holdersOf(lock: Place): Promise<readonly ChainHolder[]>;
  /** A lock that code inside of a hold waits for; `undefined` where it tells of none. `heldLock` is the lock of the hold. */
  waitOf(holder: ChainHolder, heldLock: Place): Promise<Place | undefined>;
}

/**
 * Follows a wait: who holds the lock, which lock that code itself waits for, who holds that one, and so on. Of several holders it follows the
 * first one that waits. It ends before a member that it has had: the chain is a circle.
 */
export async function* followWaits<Place extends { readonly name: string }>(
  lock: Place,
  source: WaitSource<Place>,
): AsyncGenerator<ChainMember, void, undefined> {
  const seen = new Set<string>();
  for (let at: Place | undefined = lock; at !== undefined && seen.size < MAX_MEMBERS; ) {
    let holder: ChainHolder | undefined;
    let wait: Place | undefined;
    for (const one of await source.holdersOf(at)) {
      if (wait) break;
      wait = await source.waitOf(one, at);
      if (wait || !holder) holder = one;
    }
    if (!holder || seen.has(holder.acquisitionId)) return;
    const { acquisitionId, label, heldForMs, expiresInMs } = holder;
    seen.add(acquisitionId);
    yield { name: at.name, acquisitionId, label, heldForMs, expiresInMs, waitsFor: wait?.name };
    at = wait;
  }
}
