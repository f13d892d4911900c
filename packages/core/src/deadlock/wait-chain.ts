import { isAcquisitionId } from '../acquire/acquisition-id.ts';
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
 * first one that waits. It ends before a member that it has had, which is a circle only where each other holder waits, too (`endlessWaits`). It
 * gives the chain each time that more of it is known: a holder first without what it waits for.
 */
export async function* followWaits<Place extends { readonly name: string }>(
  lock: Place,
  source: WaitSource<Place>,
): AsyncGenerator<readonly ChainMember[], void, undefined> {
  let chain: readonly ChainMember[] = [];
  for (let at: Place | undefined = lock; at !== undefined && chain.length < MAX_MEMBERS; ) {
    const { name } = at;
    const before = chain;
    const upTo = (holder: ChainHolder, waitsFor?: string): readonly ChainMember[] => {
      const { acquisitionId, label, heldForMs, expiresInMs } = holder;
      if (before.some((member) => member.acquisitionId === acquisitionId)) return before;
      return [...before, { name, acquisitionId, label, heldForMs, expiresInMs, waitsFor }];
    };
    const holders = await source.holdersOf(at);
    let [holder] = holders;
    if (!holder) return;
    yield upTo(holder);
    let wait: Place | undefined;
    for (const one of holders) {
      // Another program's hold tells of no wait, and its id may be too long for a name.
      if (isAcquisitionId(one.acquisitionId)) wait = await source.waitOf(one, at);
      if (!wait) continue;
      holder = one;
      break;
    }
    yield (chain = upTo(holder, wait?.name));
    if (chain === before) return;
    at = wait;
  }
}
