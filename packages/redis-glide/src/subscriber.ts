import { duplicate, type GlideClusterConnection, type GlideConnection, toMasterOf } from './clients.ts';
import { replyErrorOf } from './reply-error.ts';

/** Far longer than a subscription takes. GLIDE repeats one that the server refuses for all of this time, and tells its log alone. */
const SUBSCRIBE_MS = 1000;

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
  #refusal: Error | undefined;
  #isClosed = false;

  constructor(from: GlideConnection) {
    this.#from = from;
  }

  /** Listens to a channel until closed. Rejects if the user of the client may not. */
  async subscribe(channel: string, events: GlideChannelEvents): Promise<void> {
    await this.#checkRight('PUBLISH', channel);
    await this.#listen(channel, events, (connection) => connection.subscribe([channel], SUBSCRIBE_MS));
  }

  /** Listens to a sharded channel of a cluster, and to the plain channel of the same name. */
  async subscribeSharded(channel: string, events: GlideChannelEvents): Promise<void> {
    await this.#checkRight('SPUBLISH', channel);
    await this.#listen(channel, events, async (connection) => {
      await (connection as GlideClusterConnection).ssubscribe([channel], SUBSCRIBE_MS);
      await connection.subscribe([channel], SUBSCRIBE_MS);
    });
  }

  /** Forgets a channel whose messages nobody needs; the subscription ends with the connection. */
  forget(channel: string): void {
    this.#channels.delete(channel);
  }

  close(): void {
    this.#isClosed = true;
    this.#channels.clear();
    this.#connection?.then(
      (connection) => connection.close(),
      () => undefined,
    );
  }

  /** Publishes to the channel, to which nobody listens yet: the server checks the same right to the channel as for a subscription. */
  async #checkRight(command: 'PUBLISH' | 'SPUBLISH', channel: string): Promise<void> {
    if (this.#refusal !== undefined) throw this.#refusal;
    try {
      await this.#from.customCommand([command, channel, ''], toMasterOf(channel));
    } catch (error) {
      throw replyErrorOf(error);
    }
  }

  async #listen(
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
    } catch (error) {
      this.#channels.delete(channel);
      throw await this.#refused(connection, channel, error);
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
   * The reason why a subscription did not succeed. GLIDE would repeat it without a pause, so its connection is ended; and if the
   * server answered meanwhile, it refused the subscription, and would do so again.
   */
  async #refused(connection: GlideConnection, channel: string, error: unknown): Promise<unknown> {
    this.#connection = undefined;
    connection.close();
    this.#changed();
    this.#channels.clear();
    try {
      await this.#from.customCommand(['PING'], toMasterOf(channel));
    } catch {
      return error;
    }
    this.#refusal = new Error('NOPERM this user may not subscribe', { cause: error });
    return this.#refusal;
  }
}
