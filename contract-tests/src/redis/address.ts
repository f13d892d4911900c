export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** `host:port` as servers tell of each other, to where the client shall connect instead. */
export type NatMap = Readonly<Record<string, HostPort>>;

/** Where a deployment of Redis is. Plain data: it goes to child processes as JSON. */
export type RedisAddress =
  | { readonly kind: 'standalone'; readonly url: string }
  | {
      readonly kind: 'sentinel';
      readonly name: string;
      readonly sentinels: readonly HostPort[];
      readonly natMap?: NatMap;
    }
  | { readonly kind: 'cluster'; readonly roots: readonly HostPort[]; readonly natMap?: NatMap };
