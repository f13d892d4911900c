import type { Address } from '@locks/core/conformance/proxy';
import type { RecordableLease } from '@locks/history';

/** A hold of another library, with what that library tells of it. */
export interface PeerLease extends RecordableLease {
  release(): Promise<unknown>;
}

/** Acquires a lock of another library; rejects, or resolves with `undefined`, after `waitMs` in vain. */
export type PeerAcquire = (name: string, waitMs: number) => Promise<PeerLease | undefined>;

/** Opens a client as the documents of the library say, with holds of `ttlMs`. */
export type OpenPeer = (at: Address, ttlMs: number) => PeerAcquire;

/**
 * A hold whose library tells when it ends. The caller of the lab is a careful one: before it releases, it looks whether the hold has ended,
 * and counts it as lost then.
 */
export function expiring(validForMs: () => number, release: () => Promise<unknown>): PeerLease {
  return {
    get validForMs() {
      return validForMs();
    },
    async release() {
      if (validForMs() > 0) return await release();
      await release().catch(() => undefined);
      throw Object.assign(new Error('the hold had ended'), { code: 'LOCK_LOST' });
    },
  };
}
