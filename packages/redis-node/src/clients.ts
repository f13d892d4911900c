import type { RedisCommand } from '@locks/redis-protocol';

/**
 * A client that `createClient`, `createSentinel` or `createCluster` of `redis` made, with any modules, scripts, RESP
 * version and type mapping.
 */
export interface NodeRedisClient {
  readonly isOpen: boolean;
  sendCommand(...args: never[]): Promise<unknown>;
  duplicate(...args: never[]): unknown;
  connect(): Promise<unknown>;
}

// The parts of these clients that this package uses, without their generics.

/**
 * Options of every command: replies as plain strings and numbers, whatever the client maps them to, and no time limit of
 * the client's, which costs a timer and a signal for each command; core has its own.
 */
export const COMMAND_OPTIONS = { typeMapping: undefined, timeout: undefined } as const;

type ChannelListener = (message: string, channel: string) => void;

interface Emitter {
  on(event: string | symbol, listener: (...args: unknown[]) => void): unknown;
  off(event: string | symbol, listener: (...args: unknown[]) => void): unknown;
  removeListener(event: string | symbol, listener: (...args: unknown[]) => void): unknown;
}

interface Connectable extends Emitter {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  readonly _keyPrefix?: unknown;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: ChannelListener): Promise<unknown>;
  unsubscribe(channel: string, listener: ChannelListener): Promise<unknown>;
  /** Returns a promise with Sentinel. */
  destroy(): unknown;
}

export interface StandaloneClient extends Connectable {
  sendCommand(command: RedisCommand, options: typeof COMMAND_OPTIONS): Promise<unknown>;
  duplicate(overrides?: object): StandaloneClient;
  unref(): void;
  sSubscribe(channel: string, listener: ChannelListener): Promise<unknown>;
  sUnsubscribe(channel: string, listener: ChannelListener): Promise<unknown>;
}

export interface SentinelClient extends Connectable {
  sendCommand(isReadonly: boolean, command: RedisCommand, options: typeof COMMAND_OPTIONS): Promise<unknown>;
  duplicate(overrides?: object): SentinelClient;
}

interface ClusterNode {
  readonly address: string;
  client?: { readonly isOpen: boolean; readonly isReady: boolean } | undefined;
  /** Present while the client connects for the first time. */
  readonly connectPromise?: unknown;
}

export interface ClusterClient extends Connectable {
  readonly masters: readonly ClusterNode[];
  readonly slots: readonly ({ readonly master: ClusterNode } | undefined)[];
  nodeClient(node: ClusterNode): Promise<StandaloneClient> | StandaloneClient;
  sendCommand(
    firstKey: string | undefined,
    isReadonly: boolean,
    command: RedisCommand,
    options: typeof COMMAND_OPTIONS,
  ): Promise<unknown>;
  duplicate(overrides?: object): ClusterClient;
}

export type RecognisedClient =
  | { readonly kind: 'standalone'; readonly client: StandaloneClient }
  | { readonly kind: 'sentinel'; readonly client: SentinelClient }
  | { readonly kind: 'cluster'; readonly client: ClusterClient };

/** Whether commands are sent now; if not, the client keeps them until it has connected. */
export function isReady(to: RecognisedClient): boolean {
  return to.kind === 'cluster' ? to.client.masters.some(({ client }) => client?.isReady) : to.client.isReady;
}

/** Ends a client that this package opened, in any state: one that is not open may still have a connection. */
export async function endClient(client: Pick<Connectable, 'destroy'>): Promise<void> {
  try {
    await client.destroy();
  } catch {
    // The client has ended by itself.
  }
}
