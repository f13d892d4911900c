import type { Grant } from '@locks/core/backend';
import type { ResourceKeys } from './keys.ts';

/** A grant that keeps its keys, so that renewals and the release need not compute them again. */
export interface RedisGrant extends Grant {
  readonly fencingToken: bigint;
  readonly keys: ResourceKeys;
  /** Whether the lock was free, and nobody waited. */
  readonly nobodyWaited: boolean;
  /** Set once a downgrade was sent: the hold may be a share now, also if no answer came. */
  mayBeShared: boolean;
}

export function isRedisGrant(grant: Grant): grant is RedisGrant {
  return 'keys' in grant;
}

/** Whether the hold of a grant that was exclusive may be a share now: another instance, which made the grant, may have downgraded it. */
export function mayBeShared(grant: Grant): boolean {
  return !isRedisGrant(grant) || grant.mayBeShared;
}
