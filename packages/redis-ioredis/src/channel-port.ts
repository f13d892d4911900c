import type { ChannelConnection, ChannelEvents } from '@locks/redis-protocol';
import { OpenedConnections } from '@locks/redis-protocol/kit';
import type { Cluster, Redis } from 'ioredis';
import { openChannels } from './channels.ts';
import { IoredisPort } from './ioredis-port.ts';

/** The port of an ioredis client, with channels for other protocols. */
export class IoredisChannelPort extends IoredisPort {
  readonly #client: Redis | Cluster;
  readonly #opened = new OpenedConnections();

  constructor(client: Redis | Cluster) {
    super(client);
    this.#client = client;
  }

  async openChannels(
    master: string | undefined,
    isSharded: boolean,
    { message, lost }: ChannelEvents,
  ): Promise<ChannelConnection> {
    const { ready, close, ...channels } = openChannels(this.#nodeAt(master), isSharded, {
      message,
      lost: () => {
        this.#opened.forget(close);
        lost();
      },
    });
    await this.#opened.whenReady({ ready, close });
    return { ...channels, close };
  }

  #nodeAt(master: string | undefined): Redis {
    if (master === undefined) return this.#client as Redis;
    const nodes = (this.#client as Cluster).nodes();
    const node = nodes.find(({ options: { host, port } }) => `${host}:${port}` === master);
    if (node === undefined) throw new Error(`no connection to ${master}`);
    return node;
  }

  override close(): Promise<void> {
    this.#opened.close();
    return super.close();
  }
}
