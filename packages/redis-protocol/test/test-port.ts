import { Command, type Redis } from 'ioredis';
import type { RedisCommand, RedisPort, SideConnection, SubscriptionEvents } from '../src/index.ts';

const call = (client: Redis, [name, ...args]: RedisCommand) =>
  client.sendCommand(new Command(name, args, { replyEncoding: 'utf8' })) as Promise<unknown>;

/** The simplest port, for a standalone server. `close` leaves the client open. */
export class TestPort implements RedisPort {
  readonly name = 'test-port';
  readonly cluster: boolean = false;
  readonly isPolled = false;
  readonly repeatsRefused = false;
  readonly keyPrefix = '';
  reconnects = 0;
  readonly #client: Redis;
  readonly #opened: Redis[] = [];

  constructor(client: Redis) {
    this.#client = client;
    client.on('close', () => (this.reconnects += 1));
  }

  send(_key: string, command: RedisCommand): Promise<unknown> {
    return call(this.#client, command);
  }

  masters(): readonly ((command: RedisCommand) => Promise<unknown>)[] {
    return [(command) => call(this.#client, command)];
  }

  subscribe(channel: string, { message, restored }: SubscriptionEvents): Promise<void> {
    const subscriber = this.#open();
    subscriber.on('message', (_, text: string) => message(text));
    let listening = false;
    return new Promise((resolve, reject) => {
      subscriber.on('ready', () => {
        subscriber.subscribe(channel).then(() => {
          if (listening) restored();
          listening = true;
          resolve();
        }, reject);
      });
    });
  }

  openSide(): Promise<SideConnection> {
    const side = this.#open();
    return Promise.resolve({ send: (command) => call(side, command), close: () => side.disconnect() });
  }

  close(): Promise<void> {
    for (const client of this.#opened) client.disconnect();
    return Promise.resolve();
  }

  #open(): Redis {
    const opened = this.#client.duplicate({ autoResubscribe: false, maxRetriesPerRequest: null });
    opened.on('error', () => undefined);
    this.#opened.push(opened);
    return opened;
  }
}
