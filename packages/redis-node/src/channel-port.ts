import type { ChannelConnection, ChannelEvents } from '@locks/redis-protocol';
import { OpenedConnections } from '@locks/redis-protocol/kit';
import { openChannels } from './channels.ts';
import type { ClusterClient, RecognisedClient } from './clients.ts';
import { NodeRedisPort } from './node-redis-port.ts';

/** The port of a node-redis client, with channels for other protocols. */
export class NodeRedisChannelPort extends NodeRedisPort {
  readonly #recognised: RecognisedClient;
  readonly #opened = new OpenedConnections();
  #isClosed = false;

  constructor(recognised: RecognisedClient) {
    super(recognised);
    this.#recognised = recognised;
  }

  async openChannels(
    master: string | undefined,
    isSharded: boolean,
    { message, lost }: ChannelEvents,
  ): Promise<ChannelConnection> {
    const to = master === undefined ? this.#recognised : await this.#nodeAt(master);
    if (this.#isClosed) throw new Error('the backend was closed');
    const { ready, close, ...channels } = openChannels(to, isSharded, {
      message,
      lost: () => {
        this.#opened.forget(close);
        lost();
      },
    });
    await this.#opened.whenReady({ ready, close });
    return { ...channels, close };
  }

  async #nodeAt(master: string): Promise<RecognisedClient> {
    const client = this.#recognised.client as ClusterClient;
    const found = client.masters.find(({ address }) => address === master);
    if (found === undefined) throw new Error(`no connection to ${master}`);
    return { kind: 'standalone', client: await client.nodeClient(found) };
  }

  override close(): Promise<void> {
    this.#isClosed = true;
    this.#opened.close();
    return super.close();
  }
}
