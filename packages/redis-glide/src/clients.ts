/** A `GlideClient` or `GlideClusterClient` of `@valkey/valkey-glide`. */
export interface ValkeyGlideClient {
  /**
   * Sends any command.
   *
   * @throws errors of the client as they are
   */
  customCommand(...args: never[]): Promise<unknown>;
  /** Ends the client; this package never calls it on a client that it was given. */
  close(...args: never[]): void;
}

/** `Decoder.String`: replies are strings, whatever the client's default is. The package itself is never imported. */
export const DECODE_STRINGS = 1;

interface Route {
  readonly type: 'primarySlotKey';
  readonly key: string;
}

export interface CommandOptions {
  readonly decoder: typeof DECODE_STRINGS;
  readonly route?: Route;
}

interface PubSubMessage {
  readonly channel: unknown;
  readonly message: unknown;
}

export interface GlideConfiguration {
  readonly addresses: readonly unknown[];
  readonly readOnly?: boolean;
  readonly inflightRequestsLimit?: number;
}

/** What this package uses of a client. The configuration and the socket are private in the types of GLIDE, and there in all versions. */
export interface GlideConnection extends ValkeyGlideClient {
  readonly isClosed: boolean;
  readonly config: GlideConfiguration;
  readonly socket?: {
    unref?(): unknown;
    once?(event: 'close', listener: () => void): unknown;
    off?(event: 'close', listener: () => void): unknown;
  };
  customCommand(command: readonly string[], options: CommandOptions): Promise<unknown>;
  close(): void;
  subscribe(channels: readonly string[], timeoutMs: number): Promise<unknown>;
  /** Decodes what the server sent unasked; `null`: a change of the subscriptions. */
  notificationToPubSubMessageSafe?(...args: unknown[]): unknown;
}

export interface GlideClusterConnection extends GlideConnection {
  ssubscribe(channels: readonly string[], timeoutMs: number): Promise<unknown>;
  sunsubscribe(channels: readonly string[], timeoutMs: number): Promise<unknown>;
}

export type RecognisedGlideClient =
  | { readonly kind: 'standalone'; readonly client: GlideConnection }
  | { readonly kind: 'cluster'; readonly client: GlideClusterConnection };

/** Makes a command go to the master that has the slot of `key`. */
export function toMasterOf(key: string): CommandOptions {
  return { decoder: DECODE_STRINGS, route: { type: 'primarySlotKey', key } };
}

/**
 * Connects another client to the same servers with the same credentials. It reads from masters alone and keeps no copies of what
 * it read; its socket keeps no process alive.
 */
export async function duplicate<C extends GlideConnection>(
  client: C,
  heard: ((message: PubSubMessage) => void) | undefined,
): Promise<C> {
  const { createClient } = client.constructor as unknown as { createClient(config: object): Promise<C> };
  const duplicated = await createClient.call(client.constructor, {
    ...client.config,
    pubsubSubscriptions: heard && { channelsAndPatterns: {}, callback: heard },
    // Messages need RESP3, which is the default.
    protocol: undefined,
    defaultDecoder: DECODE_STRINGS,
    readFrom: undefined,
    clientAz: undefined,
    clientSideCache: undefined,
    compression: undefined,
    clientCircuitBreaker: undefined,
    lazyConnect: false,
  });
  // Core keeps the process alive while anybody waits.
  duplicated.socket?.unref?.();
  return duplicated;
}
