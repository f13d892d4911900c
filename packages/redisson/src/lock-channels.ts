import type { ChannelConnection, RedisPort } from '@locks/redis-protocol';
import { refusedLogin } from '@locks/redis-protocol/kit';
import type { RedissonKeys } from './keys.ts';
import type { Sharding } from './publish-command.ts';

/** The shortest time between two openings of a connection. */
const REOPEN_MS = 500;
/** The pause after a connection that could not be opened, or whose channels were refused. */
const REFUSED_MS = 2_000;
/** How long a channel stays subscribed to after its last waiter: the next one may come at once. */
const LINGER_MS = 1_000;

interface LockChannelEvents {
  /** A hold of the resource ended, or may have ended before its channel was listened to. */
  mayBeFree(resource: string): void;
  /** Whether somebody waits for the resource. */
  isNeeded(resource: string): boolean;
}

interface Channel {
  readonly name: string;
  /** Names that differ only in braces around them share a channel. */
  readonly resources: Set<string>;
  readonly connection: Connection;
  isOpen: boolean;
}

interface Connection {
  readonly at: string;
  readonly opened: Promise<ChannelConnection>;
  readonly channels: Map<string, Channel>;
}

/**
 * The channels of the locks that this process waits for, all on one connection; in a cluster on one to each master. Waiting works
 * without them, at the pace of the checks.
 */
export class LockChannels {
  readonly #port: RedisPort;
  readonly #sharding: Sharding;
  readonly #events: LockChannelEvents;
  readonly #connections = new Map<string, Connection>();
  readonly #byResource = new Map<string, Channel>();
  readonly #reopenAt = new Map<string, number>();
  readonly #leaving = new Set<string>();
  readonly #missing = new Set<string>();
  #missingTimer: NodeJS.Timeout | undefined;
  #leaveTimer: NodeJS.Timeout | undefined;
  #isWarned = false;
  #isClosed = false;

  constructor(port: RedisPort, sharding: Sharding, events: LockChannelEvents) {
    this.#port = port;
    this.#sharding = sharding;
    this.#events = events;
  }

  isListening(resource: string): boolean {
    return this.#byResource.get(resource)?.isOpen === true;
  }

  /** Listens to the channel of a lock, unless it does. Tells `mayBeFree` once it does: the lock may have been freed before. */
  listen(resource: string, { channel: name, slot }: RedissonKeys): void {
    if (this.#isClosed || this.#byResource.has(resource)) return;
    const connection = this.#connectionFor(slot);
    if (connection === undefined) return this.#listenLater(resource);
    const known = connection.channels.get(name);
    const channel = known ?? { name, resources: new Set(), connection, isOpen: false };
    channel.resources.add(resource);
    this.#byResource.set(resource, channel);
    if (known === undefined) this.#subscribe(channel);
    else if (known.isOpen) this.#events.mayBeFree(resource);
  }

  /** Called when the last waiter for a resource has left. */
  leave(resource: string): void {
    if (this.#isClosed || !this.#byResource.has(resource)) return;
    this.#leaving.add(resource);
    this.#leaveTimer ??= setTimeout(() => this.#leaveAll(), LINGER_MS).unref();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#leaveTimer);
    clearTimeout(this.#missingTimer);
    this.#byResource.clear();
  }

  #subscribe(channel: Channel): void {
    const { name, resources, connection } = channel;
    connection.channels.set(name, channel);
    connection.opened
      .then((opened) => opened.add(name))
      .then(
        () => {
          channel.isOpen = true;
          for (const resource of resources) this.#events.mayBeFree(resource);
        },
        (error: unknown) => {
          this.#warn(error, name);
          this.#reopenAt.set(connection.at, performance.now() + REFUSED_MS);
          this.#lost(connection);
        },
      );
  }

  #connectionFor(slot: number): Connection | undefined {
    const { cluster } = this.#port;
    const at = cluster ? this.#port.masterOf?.(slot) : '';
    if (at === undefined) return undefined;
    const present = this.#connections.get(at);
    if (present !== undefined || performance.now() < (this.#reopenAt.get(at) ?? 0)) return present;
    this.#reopenAt.set(at, performance.now() + REOPEN_MS);
    const channels = new Map<string, Channel>();
    const opened = this.#open(cluster ? at : undefined, {
      message: (name) => {
        for (const resource of channels.get(name)?.resources ?? []) this.#events.mayBeFree(resource);
      },
      lost: () => this.#lost(connection),
    });
    const connection: Connection = { at, opened, channels };
    this.#connections.set(at, connection);
    return connection;
  }

  /** Wakes the waiters of locks without a channel after a pause: their attempts open what is missing. */
  #listenLater(resource: string): void {
    this.#missing.add(resource);
    this.#missingTimer ??= setTimeout(() => {
      this.#missingTimer = undefined;
      const resources = [...this.#missing];
      this.#missing.clear();
      for (const missing of resources) this.#events.mayBeFree(missing);
      // A timer may be early by a fraction of a millisecond.
    }, REOPEN_MS + 1).unref();
  }

  async #open(
    master: string | undefined,
    events: { message(name: string): void; lost(): void },
  ): Promise<ChannelConnection> {
    const opened = await this.#port.openChannels?.(master, this.#sharding.isSharded, events);
    if (opened === undefined) throw new Error('the client has no connection for channels');
    return opened;
  }

  /** Forgets a connection with its channels: the attempts that follow open another. */
  #lost(connection: Connection): void {
    if (this.#connections.get(connection.at) !== connection) return;
    this.#connections.delete(connection.at);
    connection.opened.then(
      (opened) => opened.close(),
      () => undefined,
    );
    if (this.#isClosed) return;
    for (const { resources } of connection.channels.values()) {
      for (const resource of resources) {
        this.#byResource.delete(resource);
        this.#events.mayBeFree(resource);
      }
    }
  }

  #leaveAll(): void {
    this.#leaveTimer = undefined;
    for (const resource of this.#leaving) {
      if (this.#events.isNeeded(resource)) continue;
      const channel = this.#byResource.get(resource);
      this.#byResource.delete(resource);
      channel?.resources.delete(resource);
      if (channel?.resources.size !== 0) continue;
      const { name, connection } = channel;
      connection.channels.delete(name);
      connection.opened.then((opened) => opened.remove(name)).catch(() => undefined);
    }
    this.#leaving.clear();
  }

  /** Warns once: waiting works without the channel, only later. */
  #warn(error: unknown, channel: string): void {
    const refusal = refusedLogin(error);
    if (this.#isWarned || (refusal === undefined && !String(error).includes('NOPERM'))) return;
    this.#isWarned = true;
    const what =
      refusal?.message ??
      `${String(error)} Grant +subscribe +ssubscribe &redisson_lock__channel:* (asked for ${channel})`;
    process.emitWarning(`Late wake-ups: ${what}`, { code: 'LOCKS_REDISSON_CHANNEL' });
  }
}
