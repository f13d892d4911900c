/** One command: its name, then its arguments. */
export type RedisCommand = readonly [string, ...string[]];

/** Sends a command to one node. */
export type NodeSender = (command: RedisCommand) => Promise<unknown>;

/** A connection that the port opened for this backend alone. */
export interface SideConnection {
  /** Sends a command on this connection alone. */
  send(command: RedisCommand): Promise<unknown>;
  /** Closes the connection. */
  close(): void;
}

/** The events of a subscription. */
export interface SubscriptionEvents {
  /** A message came. */
  message(text: string): void;
  /** Called when the connection was lost and listens again: messages may have been missed. */
  restored(): void;
}

/** The events of a subscription at one master. */
export interface ShardSubscriptionEvents {
  /** A message came. */
  message(text: string): void;
  /** Called when the connection was lost and the same channel is listened to again: messages may have been missed. */
  restored(): void;
  /** Called at the end of the subscription: the connection was lost, or the slot of the channel went to another master. */
  lost(): void;
}

/** The events of a connection for channels. */
export interface ChannelEvents {
  /** A message came. */
  message(channel: string, text: string): void;
  /** Called once, at the end of the connection, or when a channel of it went to another master. */
  lost(): void;
}

/** A connection that listens to channels, which are added and removed. It does not connect again. */
export interface ChannelConnection {
  /** Listens to one more channel. */
  add(channel: string): Promise<void>;
  /** Listens to a channel no longer. */
  remove(channel: string): Promise<void>;
  /** Closes the connection. */
  close(): void;
}

/**
 * The part of a Redis client that the protocol needs. Creating a port does no I/O and never changes the user's client; `close`
 * closes what the port itself opened.
 */
export interface RedisPort {
  /** The name of the backend: `redis-ioredis`. */
  readonly name: string;
  /** Whether keys are spread over several masters. */
  readonly cluster: boolean;
  /**
   * Whether there are no messages, and each request costs money: waiters learn of their turn by their regular check alone, and nothing
   * is asked that a lock can do without.
   */
  readonly isPolled: boolean;
  /**
   * Whether the client may send a refused command again by itself, for ever: it gets none that a server may not know, and each
   * `EVALSHA` with the source of its script.
   */
  readonly repeatsRefused: boolean;
  /** The client's own key prefix, which `send` does not apply. */
  readonly keyPrefix: string;
  /** A counter that rises whenever the client loses a connection: a command in flight may have been sent twice. */
  readonly reconnects: number;
  /**
   * Sends a command; `key` chooses the node of a cluster. Replies: strings as strings, integers as numbers or decimal strings.
   * Rejects with a
   * `LockError` if no command can ever be sent through the client as it is. `source`: of the script of an `EVALSHA`, for a client with
   * {@link repeatsRefused}.
   */
  send(key: string, command: RedisCommand, source?: string): Promise<unknown>;
  /** The last error of the connection, in a cluster of that to the master of `slot`, while the client has none, and knows why. */
  connectionError?(slot?: number): unknown;
  /** Whether the application has closed the client. */
  isClientClosed?(): boolean;
  /** One sender for each master, for commands that belong to a node (`SCAN`, `INFO`). */
  masters(): readonly NodeSender[] | Promise<readonly NodeSender[]>;
  /** Subscribes on a connection that `send` does not use, and again by itself after each reconnect. */
  subscribe(channel: string, events: SubscriptionEvents): Promise<void>;
  /** The address of the master that has a slot of a cluster, as far as the client knows. */
  masterOf?(slot: number): string | undefined;
  /**
   * Subscribes to a sharded channel of a cluster at the master with this address, and to the plain channel of the same name, on
   * a connection of its own, which ends with the subscription.
   */
  subscribeAt?(master: string, channel: string, events: ShardSubscriptionEvents): Promise<void>;
  /**
   * Opens a connection for channels: at the master with this address in a cluster, and with `isSharded` for sharded channels of
   * its slots. It ends with its client.
   */
  openChannels?(
    master: string | undefined,
    isSharded: boolean,
    events: ChannelEvents,
  ): Promise<ChannelConnection>;
  /** Opens a connection for this backend alone. Rejects for clusters. */
  openSide(): Promise<SideConnection>;
  /** Closes what the port itself opened. */
  close(): Promise<void>;
}
