/** One command as Redis takes it: its name, then its arguments. */
export type RedisCommand = readonly [string, ...string[]];

/** A connection that the port opened for us alone. */
export interface SideConnection {
  send(command: RedisCommand): Promise<unknown>;
  close(): void;
}

export interface SubscriptionEvents {
  message(text: string): void;
  /** The connection had been lost and listens again: messages may be missing. */
  restored(): void;
}

/**
 * All that the protocol needs of a Redis client. Building a port does no I/O and never changes the user's client;
 * `close` ends what the port itself opened.
 */
export interface RedisPort {
  /** The name of the backend: `redis-ioredis`. */
  readonly name: string;
  readonly cluster: boolean;
  /** The client's own key prefix, which `send` does not apply. */
  readonly keyPrefix: string;
  /** Grows whenever a connection of the client was lost: a command that was under way may have been sent twice. */
  readonly reconnects: number;
  /** Throws a `LockError` if no command can ever be sent through the client as it is. */
  assertUsable(): void;
  /** `key` says where a cluster sends it. Strings come back as strings, integers as numbers or decimal strings. */
  send(key: string, command: RedisCommand): Promise<unknown>;
  /** One sender for each master, for commands that belong to a node (`SCAN`, `INFO`). */
  masters(): readonly ((command: RedisCommand) => Promise<unknown>)[];
  /** Not on a connection that `send` uses. It subscribes again by itself after a reconnect. */
  subscribe(channel: string, events: SubscriptionEvents): Promise<void>;
  /** Not for clusters. */
  openSide(): Promise<SideConnection>;
  close(): Promise<void>;
}
