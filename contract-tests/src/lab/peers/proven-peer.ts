import type { Address } from '@locks/core/conformance/proxy';
import type { OtherLocks } from '@locks/prove';
import { openers } from './openers.ts';
import type { PeerName } from './peer-names.ts';

export interface ProvenPeer {
  readonly peer: PeerName;
  readonly at: Address;
  readonly ttlMs: number;
}

/** Another library as `prove()` opens it. */
export default async function openPeer({ peer, at, ttlMs }: ProvenPeer): Promise<OtherLocks> {
  const { open } = await openers[peer]();
  const acquire = open(at, ttlMs);
  return { name: peer, acquire: (name, { waitMs }) => acquire(name, waitMs) };
}
