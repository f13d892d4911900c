import type { RedisCommand } from '@locks/redis-protocol';

/**
 * What `@locks/redis-node` takes: what `createClient`, `createSentinel` and `createCluster` of `redis` give, with any
 * modules, scripts, RESP version and type mapping.
 */
export interface NodeRedisClient {
  readonly isOpen: boolean;
  sendCommand(...args: never[]): Promise<unknown>;
  duplicate(...args: never[]): unknown;
  connect(): Promise<unknown>;
}

// The same clients as this package uses them, with their generics left out.

/**
 * Replies as plain strings and numbers, whatever the client maps them to. And no time limit of the client's: it costs a
 * timer and a signal for each command, and core has its own.
 */
export const plainReplies = { typeMapping: undefined, timeout: undefined } as const;

interface Emitter {
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

interface Connectable extends Emitter {
  readonly isOpen: boolean;
  readonly _keyPrefix?: unknown;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  unsubscribe(channel: string, listener: (message: string) => void): Promise<unknown>;
  /** A promise, with Sentinel. */
  destroy(): unknown;
}

export interface StandaloneClient extends Connectable {
  sendCommand(command: RedisCommand, options: typeof plainReplies): Promise<unknown>;
  duplicate(overrides?: object): StandaloneClient;
}

export interface SentinelClient extends Connectable {
  sendCommand(isReadonly: boolean, command: RedisCommand, options: typeof plainReplies): Promise<unknown>;
  duplicate(overrides?: object): SentinelClient;
}

export interface ClusterClient extends Connectable {
  readonly masters: readonly object[];
  nodeClient(node: object): Promise<StandaloneClient> | StandaloneClient;
  sendCommand(
    firstKey: string | undefined,
    isReadonly: boolean,
    command: RedisCommand,
    options: typeof plainReplies,
  ): Promise<unknown>;
  duplicate(overrides?: object): ClusterClient;
}

export type Recognised =
  | { readonly kind: 'standalone'; readonly client: StandaloneClient }
  | { readonly kind: 'sentinel'; readonly client: SentinelClient }
  | { readonly kind: 'cluster'; readonly client: ClusterClient };

/** Ends a client of ours, in whatever state it is: one that is not open may still hold a connection. */
export async function end(client: Pick<Connectable, 'destroy'>): Promise<void> {
  try {
    await client.destroy();
  } catch {
    // It has ended by itself.
  }
}
