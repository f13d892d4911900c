/** The capabilities of the backend; `fencing` as it was configured. */
export interface RedissonCapabilities<Fencing extends 'volatile' | 'none' = 'volatile' | 'none'> {
  /** A hold ends at the server when its time is over. */
  readonly tenure: 'lease';
  /** Any client renews a hold, by its id. */
  readonly renewal: 'any-client';
  /** All clients of the server share the locks, those of Redisson too. */
  readonly reach: 'network';
  /** `RLock` and `RFencedLock`. Redisson's readers starve its writers: there is no mode `shared`. */
  readonly modes: readonly ['exclusive'];
  /** Redisson keeps no queue for these locks. */
  readonly order: 'none';
  /** `volatile` with the option `fencing`: the counter is a key, which can be lost with its server. */
  readonly fencing: Fencing;
  /** The bounds of a ttl in milliseconds. */
  readonly ttl: { readonly minMs: 50; readonly stepMs: 1 };
  /** With an empty prefix, nothing tells a lock from another hash: there is no `list`. */
  readonly features: readonly ['force-release'];
}

export function capabilitiesWith(fencing: 'volatile' | 'none'): RedissonCapabilities {
  return {
    tenure: 'lease',
    renewal: 'any-client',
    reach: 'network',
    modes: ['exclusive'],
    order: 'none',
    fencing,
    ttl: { minMs: 50, stepMs: 1 },
    features: ['force-release'],
  };
}
