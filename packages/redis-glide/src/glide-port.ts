import { clientClosedError } from '@locks/core/backend';
import {
  type NodeSender,
  portPerClient,
  type RedisCommand,
  type RedisPort,
  type ShardSubscriptionEvents,
  type SideConnection,
  type SubscriptionEvents,
} from '@locks/redis-protocol';
import { checkClient } from './check-client.ts';
import {
  type CommandOptions,
  DECODE_STRINGS,
  duplicate,
  type GlideClusterConnection,
  type GlideConnection,
  type RecognisedGlideClient,
  toMasterOf,
  type ValkeyGlideClient,
} from './clients.ts';
import { isMigrating } from './migration.ts';
import { replyErrorOf } from './reply-error.ts';
import { RequestWindow } from './request-window.ts';
import { GlideSubscriber } from './subscriber.ts';
import { SlotTable } from './slot-table.ts';

const TO_SERVER: CommandOptions = { decoder: DECODE_STRINGS };

/** The port of a client for one server, or for a primary with replicas. */
export class GlidePort implements RedisPort {
  readonly name = 'redis-glide';
  readonly cluster: boolean = false;
  readonly isPolled = false;
  readonly repeatsRefused = false;
  readonly keyPrefix = '';
  /** Stays 0: GLIDE never repeats a command that the server may have got. */
  readonly reconnects = 0;
  readonly #client: GlideConnection;
  readonly #window: RequestWindow;
  readonly #subscriber: GlideSubscriber;
  readonly #sides = new Set<() => void>();
  readonly #endOwn = (): void => {
    this.#subscriber.close();
    for (const close of this.#sides) close();
    this.#sides.clear();
  };

  constructor(client: GlideConnection, subscriber: GlideSubscriber) {
    this.#client = client;
    this.#window = new RequestWindow(client);
    this.#subscriber = subscriber;
    // What was opened for a client ends with it.
    client.socket?.once?.('close', this.#endOwn);
  }

  send(_key: string, command: RedisCommand): Promise<unknown> {
    return this.sendWith(TO_SERVER, command);
  }

  /** Sends within the window, and rejects with the words of the server. */
  protected async sendWith(options: CommandOptions, command: RedisCommand): Promise<unknown> {
    if (this.#client.isClosed) throw clientClosedError();
    return await this.#window.run(() => this.#client.customCommand(command, options)).catch(throwReply);
  }

  isClientClosed(): boolean {
    return this.#client.isClosed;
  }

  masters(): Promise<readonly NodeSender[]> {
    return Promise.resolve([(command) => this.send('', command)]);
  }

  subscribe(channel: string, { message, restored }: SubscriptionEvents): Promise<void> {
    return this.#subscriber.subscribe(channel, { message, changed: restored });
  }

  async openSide(): Promise<SideConnection> {
    if (this.cluster) throw new TypeError('a cluster has no side connection');
    const side = await duplicate(this.#client, undefined);
    const close = (): void => {
      this.#sides.delete(close);
      side.close();
    };
    this.#sides.add(close);
    return {
      send: (command) => side.customCommand(command, TO_SERVER).catch(throwReply),
      close,
    };
  }

  close(): Promise<void> {
    this.#client.socket?.off?.('close', this.#endOwn);
    this.#endOwn();
    return Promise.resolve();
  }
}

function throwReply(error: unknown): never {
  throw replyErrorOf(error);
}

/** The port of a client for a cluster. */
class GlideClusterPort extends GlidePort {
  override readonly cluster = true;
  readonly #client: GlideClusterConnection;
  readonly #subscriber: GlideSubscriber;
  readonly #slots: SlotTable;

  constructor(client: GlideClusterConnection) {
    const subscriber = new GlideSubscriber(client);
    super(client, subscriber);
    this.#client = client;
    this.#subscriber = subscriber;
    this.#slots = new SlotTable(client);
  }

  override async send(key: string, command: RedisCommand): Promise<unknown> {
    // A waiter that is told of its turn needs the master of its slot.
    if (!this.#slots.isKnown) await this.#slots.read().catch(() => undefined);
    try {
      return await this.sendWith(toMasterOf(key), command);
    } catch (error) {
      const isLate = error instanceof Error && error.name === 'TimeoutError';
      if (!isLate || !(await isMigrating(this.#client, key))) throw error;
      throw new Error('TRYAGAIN the slot is being migrated', { cause: error });
    }
  }

  override async masters(): Promise<readonly NodeSender[]> {
    const keys = await this.#slots.keyOfEachMaster();
    return keys.map((key) => (command) => this.sendWith(toMasterOf(key), command));
  }

  masterOf(slot: number): string | undefined {
    return this.#slots.masterOf(slot);
  }

  async subscribeAt(_master: string, channel: string, events: ShardSubscriptionEvents): Promise<void> {
    const lost = (): void => {
      this.#slots.expire();
      events.lost();
    };
    // GLIDE has subscribed again by itself, perhaps at another node.
    const changed = (): void => {
      this.#subscriber
        .isHeard(channel)
        .then((isHeard) => (isHeard ? events.restored() : lost()))
        .catch(lost);
    };
    await this.#subscriber.subscribeSharded(channel, { message: events.message, changed });
  }
}

export function portOf(recognised: RecognisedGlideClient): GlidePort {
  const { client, kind } = recognised;
  switch (kind) {
    case 'cluster':
      return new GlideClusterPort(recognised.client);
    case 'standalone':
      return new GlidePort(client, new GlideSubscriber(client));
    default:
      return kind satisfies never;
  }
}

/**
 * The port of a client that functions are called with.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export const clientPort: (client: ValkeyGlideClient) => GlidePort = portPerClient((client) =>
  portOf(checkClient(client)),
);
