import { duplicate, type GlideClusterConnection, type GlideConnection, toMasterOf } from './clients.ts';
import { replyErrorOf } from './reply-error.ts';

/** How often a subscription is tried that gets no answer from a server that answers otherwise. */
const TRIES = 2;
/** Far longer than a subscription takes. GLIDE repeats one that the server refuses for all of this time, and tells its log alone. */
const SUBSCRIBE_MS = 1000;

type PublishCommand = 'PUBLISH' | 'SPUBLISH';

export interface GlideChannelEvents {
  message(text: string): void;
  /** Called when subscriptions changed without being asked to: messages may have been missed. */
  changed(): void;
}

/**
 * A client of our own that listens to channels. GLIDE connects it again and subscribes again by itself.
 */
export class GlideSubscriber {
  readonly #from: GlideConnection;
  readonly #channels = new Map<string, GlideChannelEvents>();
  #connection: Promise<GlideConnection> | undefined;
  #subscribing = 0;
  readonly #unanswered = { PUBLISH: 0, SPUBLISH: 0 };
  #isClosed = false;

  constructor(from: GlideConnection) {
    this.#from = from;
  }

  /** Listens to a channel until closed. Rejects if the user of the client may not. */
  async subscribe(channel: string, events: GlideChannelEvents): Promise<void> {
    await this.#checkRight('PUBLISH', channel);
    await this.#listen('PUBLISH', channel, events, (connection) =>
      connection.subscribe([channel], SUBSCRIBE_MS),
    );
  }

  /** Listens to a sharded channel of a cluster, and to the plain channel of the same name. */
  async subscribeSharded(channel: string, events: GlideChannelEvents): Promise<void> {
    await this.#checkRight('SPUBLISH', channel);
    await this.#listen('SPUBLISH', channel, events, async (connection) => {
      await (connection as GlideClusterConnection).ssubscribe([channel], SUBSCRIBE_MS);
      await connection.subscribe([channel], SUBSCRIBE_MS);
    });
    if (await this.isHeard(channel)) return;
    await this.#unsubscribeSharded(channel);
    throw new Error('the client listened at another node than the master of the channel');
  }

  /**
   * Whether the master of the channel's slot counts this process as a listener. A client that sends nothing does not notice that the
   * slot has another master: by the first command it does, but its subscriptions stay where they are.
   */
  async isHeard(channel: string): Promise<boolean> {
    const connection = await this.#connection;
    if (connection === undefined) return false;
    await connection.customCommand(['EXISTS', channel], toMasterOf(channel)).catch(() => undefined);
    try {
      return (await connection.customCommand(['SPUBLISH', channel, ''], toMasterOf(channel))) !== 0;
    } catch (error) {
      // Without the right to publish nothing is known.
      if (String(replyErrorOf(error)).includes('NOPERM')) return true;
      throw error;
    }
  }

  /** Ends a subscription at a wrong node, so that the next one goes to the right one. */
  async #unsubscribeSharded(channel: string): Promise<void> {
    this.#channels.delete(channel);
    this.#subscribing += 1;
    try {
      await ((await this.#connection) as GlideClusterConnection).sunsubscribe([channel], SUBSCRIBE_MS);
    } finally {
      this.#subscribing -= 1;
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#channels.clear();
    this.#connection?.then(
      (connection) => connection.close(),
      () => undefined,
    );
  }

  /** Publishes to the channel, to which nobody listens yet: the server checks the same right to it as for a subscription. */
  async #checkRight(command: PublishCommand, channel: string): Promise<void> {
    if (this.#unanswered[command] >= TRIES) throw new Error('NOPERM this user may not subscribe');
    try {
      await this.#from.customCommand([command, channel, ''], toMasterOf(channel));
    } catch (error) {
      const reply = replyErrorOf(error);
      // The right to publish is another one.
      if (!/NOPERM.*\bcommand\b/.test(String(reply))) throw reply;
    }
  }

  async #listen(
    command: PublishCommand,
    channel: string,
    events: GlideChannelEvents,
    subscribe: (connection: GlideConnection) => Promise<unknown>,
  ): Promise<void> {
    if (this.#isClosed) throw new Error('the subscriber has ended');
    this.#connection ??= this.#connect();
    const connection = await this.#connection;
    this.#channels.set(channel, events);
    this.#subscribing += 1;
    try {
      await subscribe(connection);
      this.#unanswered[command] = 0;
    } catch (error) {
      this.#channels.delete(channel);
      await this.#giveUp(connection, command, channel);
      throw error;
    } finally {
      this.#subscribing -= 1;
    }
  }

  async #connect(): Promise<GlideConnection> {
    try {
      const connection = await duplicate(this.#from, ({ channel, message }) =>
        this.#channels.get(String(channel))?.message(String(message)),
      );
      const decode = connection.notificationToPubSubMessageSafe;
      connection.notificationToPubSubMessageSafe = (...args) => {
        const message: unknown = decode?.apply(connection, args);
        if (message === null && this.#subscribing === 0) this.#changed();
        return message;
      };
      if (this.#isClosed) connection.close();
      return connection;
    } catch (error) {
      this.#connection = undefined;
      throw replyErrorOf(error);
    }
  }

  #changed(): void {
    for (const { changed } of [...this.#channels.values()]) changed();
  }

  /**
   * Ends a connection whose subscription did not succeed: GLIDE would repeat it without a pause. If the server answers otherwise, it
   * probably refuses the subscription.
   */
  async #giveUp(connection: GlideConnection, command: PublishCommand, channel: string): Promise<void> {
    this.#connection = undefined;
    connection.close();
    this.#changed();
    this.#channels.clear();
    try {
      await this.#from.customCommand(['PING'], toMasterOf(channel));
      this.#unanswered[command] += 1;
    } catch {
      // The server is away.
    }
  }
}
