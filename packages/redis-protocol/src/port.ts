/** One command: its name, then its arguments. */
export type RedisCommand = readonly [string, ...string[]];

/** A connection that the port opened for this backend alone. */
export interface SideConnection {
  /** Sends a command on this connection alone. */
  send(command: RedisCommand): Promise<unknown>;
  /** Closes it. */
  close(): void;
}

/** What a subscription tells the backend. */
export interface SubscriptionEvents {
  /** A message came. */
  message(text: string): void;
  /** The connection was lost and listens again: messages may have been missed. */
  restored(): void;
}

/** What a subscription at one master tells the backend. */
export interface ShardSubscriptionEvents {
  /** A message came. */
  message(text: string): void;
  /** It has ended: the connection was lost, or the slot of the channel went to another master. */
  lost(): void;
}

/**
 * What the protocol needs of a Redis client. Creating a port does no I/O and never changes the user's client; `close`
 * closes what the port itself opened.
 */
export interface RedisPort {
  /** The name of the backend: `redis-ioredis`. */
  readonly name: string;
  /** Whether keys are spread over several masters. */
  readonly cluster: boolean;
  /** The client's own key prefix, which `send` does not apply. */
  readonly keyPrefix: string;
  /** Rises whenever the client loses a connection: a command under way may have been sent twice. */
  readonly reconnects: number;
  /**
   * `key` chooses the node of a cluster. Replies: strings as strings, integers as numbers or decimal strings. Rejects with a
   * `LockError` if no command can ever be sent through the client as it is.
   */
  send(key: string, command: RedisCommand): Promise<unknown>;
  /** The last error of the connection, in a cluster of that to the master of `slot`, while the client has none, and knows why. */
  connectionError?(slot?: number): unknown;
  /** One sender for each master, for commands that belong to a node (`SCAN`, `INFO`). */
  masters(): readonly ((command: RedisCommand) => Promise<unknown>)[];
  /** Subscribes on a connection that `send` does not use, and again by itself after each reconnect. */
  subscribe(channel: string, events: SubscriptionEvents): Promise<void>;
  /** In a cluster: the address of the master that has a slot, as far as the client knows. */
  masterOf?(slot: number): string | undefined;
  /**
   * In a cluster: subscribes to a sharded channel at the master with this address, and to the plain channel of the same name, on
   * a connection of its own, which ends with the subscription.
   */
  subscribeAt?(master: string, channel: string, events: ShardSubscriptionEvents): Promise<void>;
  /** Rejects for clusters. */
  openSide(): Promise<SideConnection>;
  /** Closes what the port itself opened. */
  close(): Promise<void>;
}
