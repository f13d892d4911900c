import type { RedisCommand, RedisPort, SideConnection, SubscriptionEvents } from '@locks/redis-protocol';
import type { ClientReply, SimulatedRedis } from './simulated-redis.ts';

/** The network between one client and its server, as a simulation decides it. */
export interface SimulatedRedisNetwork {
  /** The server that the client reaches now: another one after a failover. */
  server(): SimulatedRedis;
  /**
   * Carries one request and its reply. It may execute it late, never, or several times, as a client that sends again; and it
   * may reject before or after that, as for a lost request or a lost reply.
   */
  request(command: RedisCommand, execute: () => ClientReply): Promise<ClientReply>;
  /** Carries a message of a subscription; a message that is not delivered is lost. */
  message(deliver: () => void): void;
}

interface Subscribed {
  readonly channel: string;
  readonly events: SubscriptionEvents;
  unsubscribe: () => void;
}

/** A client of a simulated server, as `@locks/redis-protocol` uses it. */
export class SimulatedRedisPort implements RedisPort {
  readonly name: string;
  readonly cluster = false;
  readonly isPolled = false;
  readonly repeatsRefused = false;
  readonly keyPrefix = '';
  reconnects = 0;
  readonly #network: SimulatedRedisNetwork;
  readonly #subscribed = new Set<Subscribed>();
  #isClosed = false;

  constructor(network: SimulatedRedisNetwork, name = 'redis-simulated') {
    this.#network = network;
    this.name = name;
  }

  send(_key: string, command: RedisCommand): Promise<ClientReply> {
    const { server, request } = this.#network;
    return request(command, () => server().execute(command));
  }

  masters(): readonly ((command: RedisCommand) => Promise<ClientReply>)[] {
    return [(command) => this.send('', command)];
  }

  async subscribe(channel: string, events: SubscriptionEvents): Promise<void> {
    const subscribed: Subscribed = { channel, events, unsubscribe: () => undefined };
    await this.#listen(subscribed);
    this.#subscribed.add(subscribed);
  }

  openSide(): Promise<SideConnection> {
    let isOpen = true;
    return Promise.resolve({
      send: (command) =>
        isOpen ? this.send('', command) : Promise.reject(new Error('Connection is closed.')),
      close: () => {
        isOpen = false;
      },
    });
  }

  /** Loses the connection for commands: those under way may be sent again. */
  disconnect(): void {
    this.reconnects += 1;
  }

  /** Loses the connection for messages; nothing is heard until {@link resubscribe}. */
  loseSubscriptions(): void {
    for (const { unsubscribe } of this.#subscribed) unsubscribe();
  }

  /** Listens again, as a client does by itself after a reconnect. Rejects if the network does. */
  async resubscribe(): Promise<void> {
    for (const subscribed of this.#subscribed) {
      subscribed.unsubscribe();
      await this.#listen(subscribed);
      if (!this.#isClosed) subscribed.events.restored();
    }
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.loseSubscriptions();
    this.#subscribed.clear();
    return Promise.resolve();
  }

  async #listen(subscribed: Subscribed): Promise<void> {
    const { channel, events } = subscribed;
    const { server, request, message } = this.#network;
    await request(['SUBSCRIBE', channel], () => {
      // Sent again, it replaces the first one.
      subscribed.unsubscribe();
      subscribed.unsubscribe = server().subscribe(channel, (text) =>
        message(() => {
          if (!this.#isClosed) events.message(text);
        }),
      );
      return ['subscribe', channel, 1];
    });
    if (this.#isClosed) subscribed.unsubscribe();
  }
}
