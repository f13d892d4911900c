import type { Address } from '@locks/core/conformance/proxy';

/** Maps each `host:port` that servers announce to the address to connect to. */
export type NatMap = Readonly<Record<string, Address>>;

/** The address of a deployment of Redis, as plain data for child processes. */
export type RedisAddress =
  | { readonly kind: 'standalone'; readonly url: string }
  | {
      readonly kind: 'sentinel';
      readonly name: string;
      readonly sentinels: readonly Address[];
      readonly natMap?: NatMap;
    }
  | { readonly kind: 'cluster'; readonly roots: readonly Address[]; readonly natMap?: NatMap };
